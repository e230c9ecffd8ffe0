"""Google's files that stand for a login, and the tokens they are traded for."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest

from mull.auth.flow import HttpReply, Session
from mull.auth.google import (
    find_grant,
    find_location,
    find_project,
    host_at,
    session,
)
from mull.auth.secret import Secret
from mull.neutral.errors import ConfigError, RefusedError, RemoteError

CANARY = "canary-google-5b"
DEFAULT = "~/.config/gcloud/application_default_credentials.json"
PERSON = {
    "type": "authorized_user",
    "client_id": "id.apps.googleusercontent.com",
    "client_secret": f"{CANARY}-s",
    "refresh_token": f"1//{CANARY}",
    "quota_project_id": "pays",
}
ROBOT = {
    "type": "service_account",
    "project_id": "robots",
    "private_key_id": "k1",
    "private_key": "no key",
    "client_email": "r@robots.iam.gserviceaccount.com",
    "token_uri": "https://oauth2.googleapis.com/token",
}


def grant(held=PERSON, path=DEFAULT, **environ):
    return find_grant(environ, {path: json.dumps(held)}.get)


def answer(status=200, **body):
    return HttpReply(status, json.dumps(body).encode(), 1000.0)


def trade(given, reply, held=None, now=1000.0):
    """The request that goes out, and what comes of it."""
    flow = session(given, held, now)
    try:
        request = next(flow)
        flow.send(reply)
    except StopIteration as end:
        return request, end.value
    raise AssertionError("it goes on")


def test_a_persons_login():
    found = grant()
    assert found is not None
    request, token = trade(found, answer(access_token="ya29.x", expires_in=3599))
    assert (request.method, request.url) == ("POST", "https://oauth2.googleapis.com/token")
    assert parse_qs(request.body.decode()) == {
        "grant_type": ["refresh_token"],
        "client_id": [PERSON["client_id"]],
        "client_secret": [PERSON["client_secret"]],
        "refresh_token": [PERSON["refresh_token"]],
    }
    assert token == Session(Secret("ya29.x"), 1000 + 3299)


def test_a_token_is_used_until_it_ages():
    held = Session(Secret("old"), 2000.0)
    flow = session(grant(), held, 1999.0)
    with pytest.raises(StopIteration) as end:
        next(flow)
    assert end.value.value is held
    _, fresh = trade(grant(), answer(access_token="new", expires_in=60), held, 2000.0)
    assert fresh == Session(Secret("new"), 1030.0)


@pytest.mark.parametrize("expires_in", [None, "soon", -1, True, 1e99])
def test_an_age_that_is_none_is_an_hour(expires_in):
    _, token = trade(grant(), answer(access_token="x", expires_in=expires_in))
    assert token.refresh_at == 1000 + 3300


def test_where_files_are():
    assert grant(ROBOT, "/r.json", GOOGLE_APPLICATION_CREDENTIALS="/r.json").place == "/r.json"
    place = "/cfg/application_default_credentials.json"
    assert grant(PERSON, place, CLOUDSDK_CONFIG="/cfg").place == place
    assert find_grant({}, {}.get) is None


@pytest.mark.parametrize(
    ("held", "text"),
    [
        ([], "is not a Google credentials file"),
        ({**PERSON, "refresh_token": 1}, "has no refresh_token"),
        ({**ROBOT, "private_key": ""}, "has no private_key"),
        ({"type": "external_account"}, 'of the type "external_account", which mull cannot use'),
        ({**ROBOT, "token_uri": "http://evil.example/"}, "token_uri in .* is not an https address"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(held, text):
    with pytest.raises(ConfigError, match=text) as caught:
        grant(held)
    assert CANARY not in str(caught.value)


def test_a_file_that_is_named_must_be_there():
    with pytest.raises(ConfigError, match="which does not exist"):
        find_grant({"GOOGLE_APPLICATION_CREDENTIALS": "/nope.json"}, {}.get)


def test_no_more_tokens():
    reply = answer(400, error="invalid_grant", error_description="Token has been revoked.")
    with pytest.raises(RefusedError) as caught:
        trade(grant(), reply)
    assert str(caught.value) == (
        f'Google issued no token for the login in {DEFAULT}: "Token has been revoked.";'
        " run `gcloud auth application-default login` to log in again"
    )
    with pytest.raises(RemoteError, match="something other than JSON"):
        trade(grant(), HttpReply(502, b"<html>", 0))


def test_nothing_of_it_is_shown():
    shown = f"{grant()!r} {next(session(grant(), None, 0))!r}"
    assert CANARY not in shown


@pytest.mark.parametrize(
    ("environ", "held", "project"),
    [
        ({"GOOGLE_VERTEX_PROJECT": "a", "GOOGLE_CLOUD_PROJECT": "b"}, PERSON, "a"),
        ({"GOOGLE_CLOUD_PROJECT": "b"}, ROBOT, "b"),
        ({}, ROBOT, "robots"),
        ({}, PERSON, "pays"),
        ({}, None, None),
    ],
)
def test_projects(environ, held, project):
    assert find_project(environ, grant(held) if held else None) == project


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        ({}, "aiplatform.googleapis.com"),
        ({"GOOGLE_CLOUD_LOCATION": "europe-west4"}, "europe-west4-aiplatform.googleapis.com"),
        ({"GOOGLE_VERTEX_LOCATION": "eu"}, "aiplatform.eu.rep.googleapis.com"),
        ({"CLOUD_ML_REGION": "us-east5"}, "us-east5-aiplatform.googleapis.com"),
    ],
)
def test_locations(environ, host):
    assert host_at(find_location(environ)) == host


def test_a_service_account_signs_with_its_key():
    crypto = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from base64 import urlsafe_b64decode

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding

    key = crypto.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    found = grant({**ROBOT, "private_key": pem})
    request, _ = trade(found, answer(access_token="x"), now=500.9)
    form = parse_qs(request.body.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    signed, _, signature = form["assertion"][0].rpartition(".")

    def part(text):
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))

    head, claims = [json.loads(part(one)) for one in signed.split(".")]
    assert head == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert claims == {
        "iss": ROBOT["client_email"],
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "aud": ROBOT["token_uri"],
        "iat": 500,
        "exp": 4100,
    }
    key.public_key().verify(part(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())


def test_a_service_account_without_a_key_or_the_package(monkeypatch):
    pytest.importorskip("cryptography")
    with pytest.raises(ConfigError, match="is not an RSA key"):
        trade(grant(ROBOT), answer(access_token="x"))
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(ConfigError, match=r"install .*'mull-reasoning\[vertex\]'"):
        trade(grant(ROBOT), answer(access_token="x"))
