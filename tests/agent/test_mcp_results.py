"""What a server answered, as a tool result."""

import pytest

from mull.agent.mcp.results import MOST_CHARACTERS, MOST_MEDIA, cut, outcome_of
from mull.agent.tools.tool import Outcome
from mull.neutral.blocks import MediaBlock


def text(said):
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"content": [text("a"), text("b")]}, Outcome("a\nb")),
        ({"content": [text("no")], "isError": True}, Outcome("no", failed=True)),
        ({"content": []}, Outcome("(no output)")),
        (
            {"content": [], "isError": True},
            Outcome("the tool failed and gave no reason", failed=True),
        ),
        (
            {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/jpeg"}]},
            Outcome("", media=(MediaBlock("image/jpeg", data="aGk="),)),
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "x://a", "text": "in"}}]},
            Outcome("x://a:\nin"),
        ),
        (
            {
                "content": [
                    {
                        "type": "resource",
                        "resource": {"uri": "x://a", "blob": "aGk=", "mimeType": "application/pdf"},
                    }
                ]
            },
            Outcome("", media=(MediaBlock("application/pdf", data="aGk=", name="x://a"),)),
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "x://a", "blob": "aGk="}}]},
            Outcome("[x://a: application/octet-stream, 2 bytes, not shown]"),
        ),
        (
            {"content": [{"type": "resource_link", "uri": "x://a", "title": "A", "name": "a"}]},
            Outcome("resource: x://a – A"),
        ),
        (
            {"content": [{"type": "hologram"}]},
            Outcome("[content of the kind 'hologram', not shown]"),
        ),
    ],
)
def test_each_kind_of_content(result, expected):
    assert outcome_of(result) == expected


@pytest.mark.parametrize(
    ("texts", "structured", "output"),
    [
        ([], {"a": 1}, '{"a":1}'),
        ([], {"result": []}, '{"result":[]}'),
        (['{\n  "a": 1\n}'], {"a": 1}, '{\n  "a": 1\n}'),
        (["3"], {"result": 3}, "3"),
        (["three"], {"result": "three"}, "three"),
        (["a", "b"], {"result": ["a", "b"]}, "a\nb"),
        (["one\ntwo\n"], {"content": "one\ntwo\n"}, "one\ntwo\n"),
        (
            ["Paris: 21.5 degrees, windy"],
            {"t": 21.5, "sky": "windy", "wet": False},
            "Paris: 21.5 degrees, windy",
        ),
        (
            ["Found 2."],
            {"rows": [1, 2]},
            '{"rows":[1,2]}\n[the same result as text, 8 characters, is left out]',
        ),
        (
            ["13"],
            {"result": 3},
            '{"result":3}\n[the same result as text, 2 characters, is left out]',
        ),
        (["x"], {}, "{}\n[the same result as text, 1 characters, is left out]"),
    ],
)
def test_one_form_of_a_result_is_sent_the_text_if_it_says_all(texts, structured, output):
    result = {"content": [text(said) for said in texts], "structuredContent": structured}
    assert outcome_of(result) == Outcome(output)


def test_a_long_text_is_cut_and_says_how_much():
    shown = outcome_of({"content": [text("a" * 100_000 + "z")]}).text
    assert shown.startswith("a" * 48_000 + "\n[… 36,001 of 100,001 characters cut …]\naaa")
    assert shown.endswith("aaz")
    assert cut("x" * MOST_CHARACTERS) == "x" * MOST_CHARACTERS


def test_an_image_that_is_too_large_is_told_of():
    part = {"type": "image", "data": "a" * (MOST_MEDIA + 4), "mimeType": "image/png"}
    assert outcome_of({"content": [part]}) == Outcome(
        "[image/png of 3,750,003 bytes left out: too large to send]"
    )


def test_attachments_have_a_bound():
    part = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    block = outcome_of({"content": [part] * 22})
    assert len(block.media) == 20
    assert block.text == "\n".join(["[image/png left out: at most 20 attachments are sent]"] * 2)
