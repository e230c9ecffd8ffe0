"""Keys and regions where Amazon's tools keep them, and signatures as Amazon's signer gives them."""

from __future__ import annotations

import pytest

from mull.auth.aws import find_keys, find_region
from mull.auth.flow import HttpRequest
from mull.auth.secret import Secret
from mull.auth.sigv4 import AwsKeys, Scope, scope_of, sign
from mull.neutral.errors import ConfigError

CANARY = "canary-aws-71c2"
CREDENTIALS = f"""
[default]
aws_access_key_id = AKIDDEFAULT
aws_secret_access_key = {CANARY}

[work]
aws_access_key_id=AKIDWORK
aws_secret_access_key=a%b/c+d=
aws_session_token = token==
region = eu-west-1
"""
CONFIG = """
[default]
region = us-west-2
s3 =
  max_concurrent_requests = 20

[profile corp]
sso_session = corp
region = us-east-2

[profile inside]
aws_access_key_id = AKIDINSIDE
aws_secret_access_key = secret
"""
FILES = {"~/.aws/credentials": CREDENTIALS, "~/.aws/config": CONFIG}


def keys(files=FILES, **environ):
    return find_keys(environ, files.get)


def region(files=FILES, **environ):
    return find_region(environ, files.get)


def test_variables_go_before_files():
    found = keys(AWS_ACCESS_KEY_ID="AKID", AWS_SECRET_ACCESS_KEY="s", AWS_SESSION_TOKEN="t")
    assert found == AwsKeys(Secret("AKID"), Secret("s"), Secret("t"), "AWS_ACCESS_KEY_ID")


@pytest.mark.parametrize(
    ("profile", "access", "place"),
    [
        (None, "AKIDDEFAULT", "profile default in ~/.aws/credentials"),
        ("work", "AKIDWORK", "profile work in ~/.aws/credentials"),
        ("inside", "AKIDINSIDE", "profile inside in ~/.aws/config"),
    ],
)
def test_profiles_in_both_files(profile, access, place):
    found = keys(**({"AWS_PROFILE": profile} if profile else {}))
    assert found is not None
    assert (found.access_key, found.place) == (Secret(access), place)


def test_nothing_in_a_value_is_filled_in():
    found = keys(AWS_PROFILE="work")
    assert found is not None
    assert (found.secret_key, found.session_token) == (Secret("a%b/c+d="), Secret("token=="))


def test_files_elsewhere():
    files = {"/c": CREDENTIALS}
    found = keys(files, AWS_SHARED_CREDENTIALS_FILE="/c")
    assert found is not None
    assert found.place == "profile default in /c"


def test_without_any_keys_there_are_none():
    assert keys({}) is None
    assert region({}) is None


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, "a"),
        ({"AWS_DEFAULT_REGION": "b"}, "b"),
        ({}, "us-west-2"),
        ({"AWS_PROFILE": "work"}, "eu-west-1"),
        ({"AWS_PROFILE": "corp"}, "us-east-2"),
        ({"AWS_PROFILE": "inside"}, None),
    ],
)
def test_regions(environ, found):
    assert region(**environ) == found


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"AWS_ACCESS_KEY_ID": "a"}, "AWS_SECRET_ACCESS_KEY is not: set both"),
        (
            {"AWS_PROFILE": "none"},
            "there is no profile none in ~/.aws/credentials or ~/.aws/config",
        ),
        (
            {"AWS_PROFILE": "corp"},
            "profile corp in ~/.aws/config gets its keys through sso_session, which mull does not"
            " support",
        ),
    ],
)
def test_what_cannot_be_used_is_told(environ, text):
    with pytest.raises(ConfigError, match=text):
        keys(**environ)


def test_a_damaged_file_is_told_without_its_keys():
    files = {"~/.aws/credentials": f"aws_secret_access_key {CANARY}\n"}
    with pytest.raises(ConfigError) as caught:
        keys(files)
    assert "~/.aws/credentials, line 1 cannot be read" in str(caught.value)
    assert CANARY not in str(caught.value) + repr(caught.value.__cause__)


def test_keys_are_never_shown():
    assert CANARY not in f"{keys()!r} {keys()}"


# Signatures. The values are botocore 1.44.0's; tests/judges compares more of them.

SIGNER = AwsKeys(Secret("AKIDEXAMPLE"), Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"))
URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b-v1%3A0/converse-stream"
NOW = 1763254800.0


def signature(url=URL, signer=SIGNER, body=b'{"a":1}', scope=None, **headers):
    headers = {"content-type": "application/json", **headers}
    scope = scope or Scope("us-east-1")
    return sign(signer, scope, HttpRequest("POST", url, headers, body), NOW)


def test_a_signature_is_the_one_that_amazon_expects():
    assert signature() == {
        "x-amz-date": "20251116T010000Z",
        "authorization": "AWS4-HMAC-SHA256 "
        "Credential=AKIDEXAMPLE/20251116/us-east-1/bedrock/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, "
        "Signature=3607598608cdb5c98036efe86e6554d52737f932428021b441e57d2ad6a02a53",
    }


def test_a_session_token_is_sent_and_signed():
    signer = AwsKeys(SIGNER.access_key, SIGNER.secret_key, Secret("token=="))
    signed = signature(signer=signer)
    assert signed["x-amz-security-token"] == "token=="
    assert "host;x-amz-date;x-amz-security-token" in signed["authorization"]


def test_what_proxies_touch_is_not_signed():
    more = {"accept": "x", "user-agent": "mull", "x-forwarded-for": "1.2.3.4"}
    assert signature(**more) == signature()
    assert signature(url=URL.replace(".com/", ".com:443/")) == signature()


@pytest.mark.parametrize(
    "change",
    [
        {"body": b'{"a":2}'},
        {"url": URL + "x"},
        {"url": URL + "?a=1"},
        {"content-type": "text/plain"},
        {"x-amz-meta": "1"},
        {"scope": Scope("us-east-2")},
        {"scope": Scope("us-east-1", "bedrock-mantle")},
    ],
)
def test_all_else_is(change):
    assert signature(**change)["authorization"] != signature()["authorization"]


@pytest.mark.parametrize(
    ("url", "region_named", "scope"),
    [
        (URL, None, Scope("us-east-1", "bedrock")),
        (URL, "eu-west-1", Scope("us-east-1", "bedrock")),
        (
            "https://bedrock-mantle.eu-north-1.api.aws/v1",
            None,
            Scope("eu-north-1", "bedrock-mantle"),
        ),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", None, Scope("us-gov-west-1")),
        ("http://127.0.0.1:8080", "eu-west-1", Scope("eu-west-1")),
        ("http://127.0.0.1:8080", None, None),
        ("https://bedrock-runtime.us-east-1.amazonaws.com.evil.example", None, None),
    ],
)
def test_the_scope_follows_from_the_address(url, region_named, scope):
    assert scope_of(url, region_named) == scope
