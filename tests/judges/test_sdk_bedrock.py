"""botocore as a judge of Converse: its service model of our requests, its event streams and parsers
of what we read and write, its signer of our signatures, its session of where keys are found."""

from __future__ import annotations

import base64
import datetime
import json
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import FIXTURES, answers, assembled, essence, ids, read, target_of, written
from conversations import snapshot, target
from mull.auth.aws import find_keys, find_region
from mull.auth.flow import HttpRequest
from mull.auth.secret import Secret
from mull.auth.sigv4 import AwsKeys, Scope, sign
from mull.dialects.registry import encode_request
from mull.dialects.serving import write_answer, write_failure
from mull.history.log import Log
from mull.neutral.assemble import assemble, tell
from mull.neutral.blocks import MediaBlock, TextBlock, ToolResultBlock
from mull.neutral.events import Failed
from mull.neutral.messages import Message, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare

botocore = pytest.importorskip("botocore")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

HERE = target_of("bedrock-converse")
BUDGET = [{"type": "budget_tokens", "min": 1024, "max": 32_000}]
CLAUDE = target(
    "anthropic-budget",
    dialect="bedrock-converse",
    options=BUDGET,
    model="a.b-v1:0",
    can_be_off=True,
)
NAMES = sorted(name for dialect, name in FIXTURES if dialect == "bedrock-converse")


@pytest.fixture(scope="module")
def service() -> Any:
    from botocore.session import get_session

    return get_session().get_service_model("bedrock-runtime")


# Requests.


PLAIN = {
    "string": str,
    "integer": int,
    "long": int,
    "float": int | float,
    "double": int | float,
    "boolean": bool,
}


def misfits(shape: Any, value: Any, where: str) -> list[str]:
    """What in a JSON value is not as the service model has it."""
    kind = shape.type_name
    if kind == "map" or getattr(shape, "is_document_type", False):
        return []
    if kind == "structure":
        return unfit_keys(shape, value, where)
    if kind == "list":
        places = ((v, f"{where}[{n}]") for n, v in enumerate(value))
        return [found for one, place in places for found in misfits(shape.member, one, place)]
    if kind == "blob":
        base64.b64decode(value, validate=True)
        return []
    odd = kind == "string" and shape.enum and value not in shape.enum
    return [f"{where} is {value!r}"] if odd or not isinstance(value, PLAIN[kind]) else []


def unfit_keys(shape: Any, value: dict[str, Any], where: str) -> list[str]:
    found = [f"{where}.{key} is unknown" for key in value if key not in shape.members]
    found += [f"{where}.{key} is missing" for key in shape.required_members if key not in value]
    if getattr(shape, "is_tagged_union", False) and len(value) != 1:
        found.append(f"{where} is a union with {sorted(value)}")
    for key in value.keys() & shape.members.keys():
        found += misfits(shape.members[key], value[key], f"{where}.{key}")
    return found


def answered(message: Message) -> list[Message]:
    """An answer as the endpoint gave it, with the results of its calls."""
    answer = assembled(written("bedrock-converse", [*tell(message)]), CLAUDE)
    answer = msgspec.structs.replace(answer, origin=CLAUDE.origin)
    results = tuple(ToolResultBlock(call.id, "done") for call in answer.tool_calls)
    after = [Message(role="tool", blocks=results)] if results else []
    return [user("go on"), answer, *after]


histories = st.lists(answers.map(answered), max_size=3).map(
    lambda turns: [message for turn in turns for message in turn]
)
tools = st.lists(st.sampled_from(["read", "ls"]), unique=True).map(
    lambda named: tuple(Tool(name, "does it", {"properties": {}}) for name in named)
)


@settings(max_examples=60, deadline=None)
@given(history=histories, offered=tools, stream=st.booleans(), data=st.data())
def test_requests_fit_the_service_model(service, history, offered, stream, data):
    choice = data.draw(st.sampled_from([None, "auto", "required", "none"])) if offered else None
    options = RequestOptions("Be brief.", offered, choice, max_tokens=40_000, stream=stream)
    wish = snapshot(includeInContext=True, maxTokens=2048)
    media = (TextBlock("see"), MediaBlock("application/pdf", "JVBERg==", name="a: b.pdf"))
    log = Log([*history, Message(role="user", blocks=media)])
    wire = encode_request(prepare(log, wish, CLAUDE, options).request, CLAUDE)
    operation = service.operation_model("ConverseStream" if stream else "Converse")
    body = json.loads(wire.body)
    assert misfits(operation.input_shape, {**body, "modelId": "x"}, "body") == []
    uri = operation.http["requestUri"].replace("{modelId}", "a.b-v1%3A0")
    assert (wire.method, wire.path) == (operation.http["method"], uri)


def test_the_path_is_botocores(service):
    from botocore.serialize import create_serializer

    operation = service.operation_model("ConverseStream")
    for model in ("a.b-v1:0", "arn:aws:bedrock:us-east-1:1:inference-profile/x", "ü~_-."):
        given_params = {
            "modelId": model,
            "messages": [{"role": "user", "content": [{"text": "a"}]}],
        }
        theirs = create_serializer("rest-json").serialize_to_request(given_params, operation)
        to = target("none", dialect="bedrock-converse", model=model)
        wire = encode_request(prepare(Log([user("a")]), snapshot(), to).request, to)
        assert wire.path == theirs["url_path"]
        assert json.loads(wire.body) == json.loads(theirs["body"])


# Answers.


def by_botocore(service: Any, body: bytes) -> tuple[list[dict[str, Any]], str | None]:
    """The events of a stream, and the exception that it ends in."""
    from botocore.eventstream import EventStreamBuffer
    from botocore.parsers import EventStreamJSONParser

    shape = service.operation_model("ConverseStream").output_shape.members["stream"]
    parser, buffer, found = EventStreamJSONParser(), EventStreamBuffer(), []
    buffer.add_data(body)
    for event in buffer:
        told = event.to_response_dict()
        parsed = parser.parse(told, shape)
        if told["status_code"] != 200:
            return found, parsed["Error"]["Code"]
        if parsed:
            found.append(parsed)
    return found, None


def accumulated(events: list[dict[str, Any]]) -> dict[str, Any]:
    """As a client of the SDK would put them together."""
    blocks: dict[int, dict[str, Any]] = {}
    out: dict[str, Any] = {"blocks": blocks}
    for event in events:
        match event:
            case {"contentBlockStart": {"contentBlockIndex": at, "start": {"toolUse": call}}}:
                blocks[at] = {"call": (call["toolUseId"], call["name"]), "input": ""}
            case {"contentBlockDelta": {"contentBlockIndex": at, "delta": delta}}:
                block = blocks.setdefault(at, {})
                for name, value in delta.items():
                    if name == "toolUse":
                        block["input"] = block.get("input", "") + value["input"]
                    elif name == "reasoningContent":
                        for key, piece in value.items():
                            block[key] = block.get(key, type(piece)()) + piece
                        block["thought"] = True
                    elif name == "text":
                        block["text"] = block.get("text", "") + value
            case {"messageStop": {"stopReason": reason}}:
                out["reason"] = reason
            case {"metadata": {"usage": usage}}:
                out["usage"] = usage
    return out


def agree(service: Any, body: bytes, message: Message) -> None:
    events, _ = by_botocore(service, body)
    held = accumulated(events)["blocks"].values()
    thoughts = "".join(b.get("text", "") for b in held if b.get("thought"))
    texts = "".join(b.get("text", "") for b in held if not b.get("thought") and "call" not in b)
    redacted = [b["redactedContent"] for b in held if "redactedContent" in b]
    assert texts == message.text
    assert thoughts == "".join(block.thought for block in message.thinking)
    assert [b["signature"] for b in held if "signature" in b] == [
        block.signature for block in message.thinking if block.signature
    ]
    assert redacted == [
        base64.b64decode(block.redacted) for block in message.thinking if block.redacted
    ]
    assert [b["call"] for b in held if "call" in b and b["call"][0] in ids(message)] == [
        (call.id, call.name) for call in message.tool_calls
    ]


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".eventstream")])
def test_fixtures_are_read_as_botocore_reads_them(service, name):
    body = FIXTURES["bedrock-converse", name]
    events = read(body, HERE)
    _, thrown = by_botocore(service, body)
    assert (thrown is not None) == (
        isinstance(events[-1], Failed) and events[-1].code != "incomplete"
    )
    if name != "cut_in_signature.eventstream":
        agree(service, body, assemble(events))


@settings(max_examples=60, deadline=None)
@given(message=answers)
def test_written_streams_are_read_by_botocore(service, message):
    body = written("bedrock-converse", [*tell(message)])
    found = assembled(body, HERE)
    assert essence(found) == essence(message)
    agree(service, body, found)


@settings(max_examples=40, deadline=None)
@given(message=answers)
def test_written_documents_fit_the_service_model(service, message):
    from botocore.parsers import create_parser

    body = write_answer(message, "bedrock-converse").body
    shape = service.operation_model("Converse").output_shape
    assert misfits(shape, json.loads(body), "answer") == []
    parsed = create_parser("rest-json").parse(
        {"status_code": 200, "headers": {}, "body": body}, shape
    )
    content = parsed["output"]["message"]["content"]
    assert "".join(block.get("text", "") for block in content) == message.text


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
def test_errors_are_botocores(service, status):
    from botocore.parsers import create_parser

    told, body = write_failure(Failed("no"), "bedrock-converse", status)
    shape = service.operation_model("Converse").output_shape
    parsed = create_parser("rest-json").parse(
        {"status_code": told, "headers": {}, "body": body}, shape
    )
    assert parsed["Error"]["Message"] == "no"
    known = {error.name for error in service.operation_model("Converse").error_shapes}
    assert parsed["Error"]["Code"] in known


def test_a_failure_inside_a_stream_is_an_exception_of_its_shape(service):
    shape = service.operation_model("ConverseStream").output_shape.members["stream"]
    for code in ("ThrottlingException", "AccessDeniedException", None, "rate_limit_error"):
        body = written("bedrock-converse", [Failed("no", code)])
        _, thrown = by_botocore(service, body)
        assert thrown in shape.members


# Signatures.

_paths = st.text(st.sampled_from("abc/%:.~-_é +"), max_size=12).map(lambda path: f"/{path}")
_values = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


@settings(max_examples=200, deadline=None)
@given(
    path=_paths.filter(lambda path: "//" not in path and "/." not in path),
    body=st.binary(max_size=50),
    secret=_values,
    token=st.none() | _values,
    now=st.integers(0, 2**31),
)
def test_signatures_are_botocores(path, body, secret, token, now):
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    url = f"https://bedrock-runtime.eu-west-1.amazonaws.com{path}"
    request = AWSRequest("POST", url, headers={"Content-Type": "application/json"}, data=body)
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    with mock.patch("botocore.auth.get_current_datetime", return_value=moment):
        SigV4Auth(Credentials("AKID", secret, token), "bedrock", "eu-west-1").add_auth(request)
    keys = AwsKeys(Secret("AKID"), Secret(secret), Secret(token) if token else None)
    plain = HttpRequest("POST", url, {"content-type": "application/json"}, body)
    ours = sign(keys, Scope("eu-west-1"), plain, now)
    assert ours == {
        name.lower(): value
        for name, value in request.headers.items()
        if name.lower() in ("authorization", "x-amz-date", "x-amz-security-token")
    }


@pytest.mark.parametrize("profile", [None, "default", "work", "inside"])
def test_keys_are_found_where_botocore_finds_them(tmp_path, monkeypatch, profile):
    from botocore.session import Session

    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = A1\naws_secret_access_key = s1\n"
        "[work]\naws_access_key_id=A2\naws_secret_access_key=s%2=\naws_session_token = t2\n"
    )
    (tmp_path / "config").write_text(
        "[default]\nregion = us-west-2\ns3 =\n  a = b\n[profile work]\nregion=eu-west-1\n"
        "[profile inside]\naws_access_key_id = A3\naws_secret_access_key = s3\nregion = x\n"
    )
    environ = {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        **({"AWS_PROFILE": profile} if profile else {}),
    }
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    session = Session()
    theirs = session.get_credentials()

    def text_of(path: str) -> str:
        return open(path).read()

    ours = find_keys(environ, text_of)
    assert ours is not None
    held = (ours.access_key, ours.secret_key, ours.session_token)
    assert [one and one.reveal() for one in held] == [
        theirs.access_key,
        theirs.secret_key,
        theirs.token,
    ]
    assert find_region(environ, text_of) == session.get_config_variable("region")
