"""Thoughts and calls that a model marked inside its answer are taken out, and nothing else is."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mull.dialects.inline_calls import HERMES, KIMI_OPENINGS
from mull.dialects.tags import Piece, TagSplitter
from mull.neutral.assemble import assemble
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.events import Finished, Reclassified, TextDelta, ThinkingDelta, ToolCallDelta

THINK = (("<think>", "</think>"),)
ALL = (
    *THINK,
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<mm:think>", "</mm:think>"),
    ("<|channel>thought", "<channel|>"),
    ("<|turn>thinking", "<turn|>"),
    ("[THINK]", "[/THINK]"),
)


def feed(parts, pairs=THINK, **options):
    splitter = TagSplitter(pairs, **options)
    pieces = [piece for part in parts for piece in splitter.feed(part)]
    return pieces + splitter.close()


def fold(pieces):
    """Blocks as (kind, text, name, id), in the order of their first piece."""
    blocks = {}
    for piece in pieces:
        kind, text, name, id_ = blocks.get(piece.block, (piece.kind, "", None, None))
        if piece.kind == "orphan_close":
            kind = "thinking"
        else:
            assert kind == piece.kind
        blocks[piece.block] = (kind, text + piece.text, piece.name or name, piece.id or id_)
    return list(blocks.values())


def split(text, pairs=THINK, **options):
    """The blocks of a text, which must be the same for a text that comes one by one."""
    whole = fold(feed([text], pairs, **options))
    assert fold(feed(list(text), pairs, **options)) == whole
    return [block[:2] if block[0] != "tool_call" else block for block in whole]


def message(pieces):
    """What a codec makes of pieces: one event each, with the block as its key."""
    events = []
    for kind, text, name, id_, block in pieces:
        match kind:
            case "text":
                events.append(TextDelta(text, block))
            case "thinking":
                events.append(ThinkingDelta(text, block, "think_tags"))
            case "tool_call":
                events.append(ToolCallDelta(block, id_, name, text))
            case "orphan_close":
                events.append(Reclassified(block, "think_tags"))
    return assemble([*events, Finished("stop")])


# --- the cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(len("<think>secret</think>ANSWER") + 1))
def test_a01_a_tag_may_be_cut_anywhere(cut):
    text = "<think>secret</think>ANSWER"
    assert fold(feed([text[:cut], text[cut:]])) == [
        ("thinking", "secret", None, None),
        ("text", "ANSWER", None, None),
    ]


@pytest.mark.parametrize(("opener", "closer"), ALL)
def test_a01_every_configured_pair_counts(opener, closer):
    assert split(f"{opener}a\nb{closer}\n\nHi", ALL) == [("thinking", "a\nb"), ("text", "\n\nHi")]


def test_a03_what_only_looks_like_a_tag_comes_through():
    text = "if a < b use <thead> and <think-tank> <thi"
    assert split(text) == [("text", text)]


@pytest.mark.parametrize("text", ["a < b", "<th>", "<thead>", "<think-tank>", "< think>", "1<2"])
def test_a03_text_is_released_as_soon_as_it_cannot_be_a_tag(text):
    splitter = TagSplitter(THINK)
    assert "".join(piece.text for piece in splitter.feed(text)) == text
    assert splitter.feed(text) == [Piece("text", text)]
    assert splitter.close() == []


def test_a03_only_what_may_still_be_a_tag_is_held():
    splitter = TagSplitter(THINK)
    assert splitter.feed("x <thi") == [Piece("text", "x ")]
    assert splitter.feed("s") == [Piece("text", "<this")]
    assert splitter.feed("</thin") == []
    assert splitter.close() == [Piece("text", "</thin")]


def test_a04_an_answer_may_begin_inside_the_thought():
    text = "internal reasoning</think>answer"
    assert split(text, starts_in_reasoning=True) == [
        ("thinking", "internal reasoning"),
        ("text", "answer"),
    ]


def test_a04_an_opening_tag_may_come_all_the_same():
    expected = [("thinking", "\na"), ("text", "b")]
    assert split("\n<think>a</think>b", starts_in_reasoning=True) == expected
    assert split("\n<think>a</think>b") == expected


def test_a04_an_empty_thought_is_a_thought():
    expected = [("thinking", ""), ("text", "answer")]
    assert split("</think>answer", starts_in_reasoning=True) == expected
    assert split("<think></think>answer") == expected
    assert split("<think>") == [("thinking", "")]


def test_a04_a_closing_tag_alone_makes_the_text_before_it_a_thought():
    text = "internal reasoning</think>answer"
    assert split(text) == [("thinking", "internal reasoning"), ("text", "answer")]
    assert message(feed(list(text))).blocks == (
        ThinkingBlock("internal reasoning", "think_tags"),
        TextBlock("answer"),
    )


@pytest.mark.parametrize("text", ["So 4.\n</think>\n\nFour", "So 4. </think>\nFour", "</think>Hi"])
def test_a04_an_orphan_may_stand_after_blanks(text):
    before, after = text.split("</think>")
    blocks = [("thinking", before), ("text", after)]
    assert [b for b in split(text) if b[1] or b[0] == "text"] == [b for b in blocks if b[1]]


def test_a04_text_becomes_a_thought_only_once():
    assert split("a</think>b</think>c") == [("thinking", "a"), ("text", "bc")]
    assert [p.kind for p in feed(["a</think>b</think>c"])].count("orphan_close") == 1


@pytest.mark.parametrize(
    "text",
    [
        "Use `<think>` to start and `</think>` to end it.",
        "`<think>` opens a thought.",
        "Wrap it in <think> and </think>.",
        "Wrap it:\n<think>\nfoo</think>\nDone.",
        "```\n<think>a</think>\n```\nand </think>",
        "```xml\n</think>\n```",
        "The `code</think>",
        'It ends with "</think>".',
        "It ends with (</think>)",
        "The </think> tag ends it.",
        "The last tag is </think>",
        "The last tag is </think>.",
        "``a ` </think>`` b",
    ],
)
def test_a05_an_answer_that_talks_about_tags_stays(text):
    assert split(text) == [("text", text)]


def test_a05_code_does_not_count_even_where_tags_do_anywhere():
    text = "Use `<think>`:\n```\n<think>a</think>\n```\n"
    assert split(text, anywhere=True) == [("text", text)]
    assert split(text + "<think>b</think>c", anywhere=True) == [
        ("text", text),
        ("thinking", "b"),
        ("text", "c"),
    ]


def test_a05_a_lone_back_tick_is_no_code_after_its_line():
    text = "the ` key\n"
    assert split(text + "<think>b</think>", anywhere=True) == [("text", text), ("thinking", "b")]


def test_a05_tags_are_off_where_thoughts_have_their_own_field():
    splitter = TagSplitter(THINK)
    assert splitter.feed("\n<thi") == []
    assert splitter.disable() == [Piece("text", "\n<thi")]
    assert splitter.feed("nk>a</think>b <thi") == [Piece("text", "nk>a</think>b <thi")]
    assert splitter.close() == []


def test_disabling_ends_a_thought_that_is_open():
    splitter = TagSplitter(THINK, anywhere=True)
    pieces = splitter.feed("<think>a</th") + splitter.disable() + splitter.feed("b<think>c")
    assert fold(pieces + splitter.close()) == [
        ("thinking", "a</th", None, None),
        ("text", "b<think>c", None, None),
    ]


def test_disabling_leaves_calls_that_are_being_read():
    text = f"{KIMI_OPENINGS[0]}{KIMI_OPENINGS[2]}f:0<|tool_call_argument_begin|>{{"
    splitter = TagSplitter(THINK)
    pieces = splitter.feed(text) + splitter.disable() + splitter.feed("}<|tool_call_end|>")
    assert fold(pieces) == [("tool_call", "{}", "f", "f:0")]


def test_a09_a_thought_cut_off_is_all_thought():
    text = "<think>The user is asking </thi"
    assert split(text) == [("thinking", "The user is asking </thi")]


def test_a11_nothing_is_trimmed():
    text = "\n\n```py\nx\n```"
    assert split(text) == [("text", text)]
    assert fold(feed(["\n\n", "```py\nx\n```"])) == [("text", text, None, None)]
    assert split(" \n") == [("text", " \n")]
    assert split("<think>\n\n</think>\n\nHi") == [("thinking", "\n\n"), ("text", "\n\nHi")]


def test_a14_a_call_drafted_in_a_thought_is_none():
    text = (
        '<think>maybe <tool_call>{"name":"rm"}</tool_call></think><tool_call>{"name":"ls"}'
        "</tool_call>"
    )
    assert split(text) == [
        ("thinking", 'maybe <tool_call>{"name":"rm"}</tool_call>'),
        ("tool_call", "", "ls", None),
    ]
    assert message(feed([text])).blocks[1] == ToolCallBlock("call_0", "ls", {})


def test_a14_kimi_marks_in_a_thought_are_its_text():
    draft = f"{KIMI_OPENINGS[0]}{KIMI_OPENINGS[2]}f:0"
    assert split(f"<think>{draft}</think>x") == [("thinking", draft), ("text", "x")]


# --- surplus tags, and thoughts inside thoughts -------------------------------------------------


@pytest.mark.parametrize(("opener", "closer"), ALL)
@pytest.mark.parametrize("between", ["", "\n", " \n\n"])
def test_closing_tags_directly_after_a_thought_are_surplus(opener, closer, between):
    surplus = (closer + between) * 3
    for kw in ({}, {"anywhere": True}, {"starts_in_reasoning": True}):
        blocks = [("thinking", "a"), ("text", between * 3 + "answer")]
        assert split(f"{opener}a{surplus}answer", ALL, **kw) == blocks
        assert split(f"a{surplus}answer", ALL, **kw) == blocks


@pytest.mark.parametrize(("opener", "closer"), ALL)
def test_a_surplus_closing_tag_in_the_answer_leaves_its_text(opener, closer):
    for kw in ({}, {"anywhere": True}, {"starts_in_reasoning": True}):
        for answer in (f"an{closer}swer", f"answer{closer}", f"an{closer}sw{closer}er{closer}"):
            assert split(f"{opener}a{closer}{answer}", ALL, **kw) == [
                ("thinking", "a"),
                ("text", "answer"),
            ]


@pytest.mark.sweep
@pytest.mark.parametrize(("opener", "closer"), ALL)
@pytest.mark.parametrize(
    "inside",
    [
        "a{o}b{c}c",
        "{o}b{c}",
        "a\n{o}\nb\n{c}\nc",
        "a{o}b{o}c{c}d{c}e",
        "a{o}b{c}c{o}d{c}e",
        "a{o}{c}",
    ],
)
def test_a_thought_may_hold_thoughts(opener, closer, inside):
    inside = inside.format(o=opener, c=closer)
    for kw in ({}, {"anywhere": True}, {"starts_in_reasoning": True}):
        blocks = [("thinking", inside), ("text", "answer")]
        assert split(f"{opener}{inside}{closer}answer", ALL, **kw) == blocks
        assert split(f"{opener}{inside}{closer}{closer}answer", ALL, **kw) == blocks
    if not inside.startswith(opener):
        assert split(f"{inside}{closer}answer", ALL, starts_in_reasoning=True) == blocks


def test_a_thought_that_talks_of_tags_ends_with_its_closing_tag():
    for talk in ("about the <think> tag.", "about `<think>`", 'about "<think>".', "then <think>x"):
        assert split(f"<think>{talk}</think>answer") == [("thinking", talk), ("text", "answer")]
    answer = "Open with <think>, close with </think>.\n```\n</think>\n```\n`</think>`"
    for talk in ("the <think> tag", "a\n<think>\nb"):
        blocks = [("thinking", talk), ("text", answer)]
        assert split(f"<think>{talk}</think>{answer}") == blocks


def test_a_late_end_of_the_outer_thought_makes_the_text_before_it_a_thought():
    late = "c" * 3_000
    text = f"<think>a<think>b</think>{late}</think>answer"
    blocks = [("thinking", "a<think>b"), ("thinking", late), ("text", "answer")]
    assert split(text) == blocks
    assert message(feed([text])).text == "answer"


def test_text_after_an_inner_thought_waits_only_so_long():
    splitter = TagSplitter(THINK)
    splitter.feed("<think>a<think>b</think>")
    assert splitter.feed("c" * 100) == []
    assert "".join(piece.text for piece in splitter.feed("c" * 2_000)) == "c" * 2_100


@pytest.mark.parametrize(
    "answer",
    [
        "Use `<think>` to start and `</think>` to end it.",
        "Wrap it in <think> and </think>.",
        "Wrap it:\n<think>\nfoo</think>\nDone.",
        "```xml\n</think>\n```",
        'It ends with "</think>".',
        "It ends with (</think>)",
        "The </think> tag ends it.",
        "The last tag is </think>",
        "x<think>b</think>y",
        "Two: <think>a</think>, <think>b</think>.",
    ],
)
def test_a05_an_answer_that_talks_about_tags_stays_after_a_thought_too(answer):
    assert split(f"<think>a</think>{answer}") == [("thinking", "a"), ("text", answer)]
    assert split(f"a</think>{answer}") == [("thinking", "a"), ("text", answer)]


def test_surplus_tags_do_not_hide_a_call():
    call = '<tool_call>{"name":"ls"}</tool_call>'
    assert split(f"<think>a</think></think>{call}</think>b") == [
        ("thinking", "a"),
        ("tool_call", "", "ls", None),
        ("text", "b"),
    ]


# --- an answer whose thought was told in a field of its own --------------------------------------


def told(parts, thought, pairs=THINK):
    """What an answer is read as once this thought has come in a field."""
    splitter = TagSplitter(pairs)
    pieces = splitter.disable(lambda: "".join(thought.split()).encode())
    pieces += [piece for part in parts for piece in splitter.feed(part)]
    return [block[:2] for block in fold(pieces + splitter.close())]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>so it is</think>answer", "answer"),
        ("\n<think>\nso  it is\n</think>\n\nanswer", "\n\n\nanswer"),
        ("<think></think>answer", "answer"),
        ("<think>\n\n</think>answer", "answer"),
        ("<think>so it is</think></think>answer</think>", "answer"),
        ("</think>answer", "answer"),
        ("\n</think>\n</think>answer", "\n\nanswer"),
        ("<think>so it", ""),
    ],
)
def test_tags_around_the_same_thought_are_no_answer(text, answer):
    expected = [("text", answer)] if answer else []
    assert told([text], "so it is") == expected
    assert told(list(text), "so it is") == expected


@pytest.mark.parametrize(
    "text",
    [
        "<think>is a tag</think> and so on",
        "<think>so it was</think>answer",
        "<think>so it</think>answer",
        "<think>so it is, is it</think>answer",
        "<think> opens",
        "<think>",
        "<thi",
        "an </think> answer <think>so it is</think>",
        " \n",
    ],
)
def test_a05_tags_around_anything_else_are_the_answer(text):
    assert told([text], "so it is") == [("text", text)]
    assert told(list(text), "so it is") == [("text", text)]


ESSAY = "word after word " * 100  # shorter than what is looked through
BOOK = ESSAY * 2
CUT = "so it is, and so it was, and so it will be, and so it would have been,"


@pytest.mark.parametrize(
    ("thought", "text", "rest", "answer"),
    [
        ("so it", " is.</think>answer", " is.", "answer"),
        ("so it", " is.\n</think>\n\nanswer", " is.\n", "\n\nanswer"),
        (f"{CUT} in", "deed</think>Answer", "deed", "Answer"),
        ("所以答案" * 4, "是四。</think>四", "是四。", "四"),
        ("So it is.", " Or is it?</think>Answer", " Or is it?", "Answer"),
        ("So it is.", " Or is it?\n</think>\nAnswer", " Or is it?\n", "\nAnswer"),
        ("so it", " is</think></think>Answer</think>", " is", "Answer"),
        ("so it", ", or `</think>` is</think>Answer", ", or `</think>` is", "Answer"),
        ("so it", " is, as </think> is said.</think>Answer", None, None),
        ("so it", f" is {ESSAY}</think>Answer", f" is {ESSAY}", "Answer"),
    ],
)
def test_the_rest_of_a_thought_told_in_a_field_is_no_answer(thought, text, rest, answer):
    expected = [("text", text)] if rest is None else [("rest", rest), ("text", answer)]
    assert told([text], thought) == expected
    assert told(list(text), thought) == expected


@pytest.mark.parametrize("thought", ["So it is.", "Let me think", CUT, "所以。"])
@pytest.mark.parametrize(
    "rest",
    [
        "So the answer is 4.",
        "Wait, no.\n\nIt is `4`, not 5.\n",
        "\n\nSo it is 4.\n",
        f"Hm. {BOOK}\n",
    ],
)
@pytest.mark.parametrize("answer", ["Four.", "\n\n# Four\n", "```\n</think>\n```\n."])
def test_a_rest_that_begins_like_an_answer_becomes_a_thought(thought, rest, answer):
    text = f"{rest}</think>{answer}"
    told_so = told([text], thought)
    assert told_so in ([("thinking", rest), ("text", answer)], [("rest", rest), ("text", answer)])
    assert told(list(text), thought) == told_so
    surplus = f"{rest}</think></think>{answer}</think>"
    assert told([surplus], thought) == told(list(surplus), thought) == told_so


@pytest.mark.parametrize(
    "text",
    [
        "The tag is `</think>`.",
        "Close it with </think> then.",
        "Write <think>so</think> and go on.",
        "```\n</think>\n```",
        "1. </think>",
        "So:\n<think>\nso\n</think>\nDone.",
    ],
)
def test_an_answer_after_a_thought_in_a_field_may_talk_about_a_closing_tag(text):
    assert told([text], "So it is.") == [("text", text)]
    assert told(list(text), "So it is.") == [("text", text)]


@pytest.mark.parametrize(
    "text", ["# Tags\n", "\n\nAnswer", "Answer.", " Answer.\nMore.", f"Answer {'so on ' * 20}."]
)
@pytest.mark.parametrize("tags", ["</think>", "</think></think>", "</think>\n</think>\n"])
def test_a_closing_tag_that_ends_an_answer_leaves_the_answer(text, tags):
    expected = [("text", text + tags.replace("</think>", ""))]
    assert told([text + tags], "So it is.") == expected
    assert told([*text, *tags], "So it is.") == expected


@pytest.mark.parametrize(
    ("thought", "text", "held"),
    [
        ("So it is.", "Paris is the capital of France.", 0),
        ("So it is.", "paris", 0),
        ("So it is.", " Paris is the capital of France.", 80),
        ("So it is.", " Hello!\nHow are you?", 9),
        ("So it is.", "\n\nParis", 2),
        ("So it is.", "## Paris", 0),
        ("so it is", "Paris", 0),
        ("so it is", '{"city": "Paris"}', 0),
        ("so it is", "paris", 0),
        (CUT, "paris", 2000),
        ("so it is", " that Paris", 2000),
    ],
)
def test_how_much_of_an_answer_is_held_for_that(thought, text, held):
    splitter = TagSplitter(THINK)
    splitter.disable(lambda: "".join(thought.split()).encode())
    text += " and so on" * 300
    before = next(at for at, one in enumerate(text) if splitter.feed(one))
    assert before <= held


@given(
    st.sampled_from(["so it", "So it is.", "", CUT]),
    st.lists(
        st.sampled_from(
            ["</think>", "<think>", "</th", " ", "\n", "so", "It", "`", ".", "x" * 70, "<", "是"]
        ),
        max_size=12,
    ),
    st.data(),
)
def test_where_an_answer_after_a_field_is_cut_makes_no_difference(thought, parts, data):
    text = "".join(parts)
    whole = told([text], thought)
    assert told(list(text), thought) == whole
    cut = data.draw(st.integers(0, len(text)))
    assert told([text[:cut], text[cut:]], thought) == whole


# --- several thoughts --------------------------------------------------------------------------


def test_a_second_thought_is_text_unless_tags_count_anywhere():
    text = "<think>a</think>x<think>b</think>y"
    assert split(text) == [("thinking", "a"), ("text", "x<think>b</think>y")]
    assert split(text, anywhere=True) == [
        ("thinking", "a"),
        ("text", "x"),
        ("thinking", "b"),
        ("text", "y"),
    ]


def test_thoughts_side_by_side_stay_apart():
    text = "<think>a</think><think></think><think>c</think>"
    assert split(text, anywhere=True) == [("thinking", "a"), ("thinking", ""), ("thinking", "c")]


def test_a_thought_ends_with_the_tag_of_its_own_pair():
    text = "<thinking>use </think> here</thinking>ok"
    assert split(text, ALL) == [("thinking", "use </think> here"), ("text", "ok")]


def test_a_tag_may_begin_like_another():
    pairs = (("<t>", "</t>"), ("<t>x", "</t>x"))
    assert split("<t>a</t>b", pairs) == [("thinking", "a"), ("text", "b")]
    assert split("<t>xa</t>xb", pairs) == [("thinking", "a"), ("text", "b")]
    assert split("<t>", pairs) == [("thinking", "")]


def test_pairs_that_are_no_pairs_are_left_out():
    assert split("<a>x", (("", "</a>"), ("<a>", ""))) == [("text", "<a>x")]
    assert split("$$a$$b", (("$$", "$$"),)) == [("thinking", "a"), ("text", "b")]
    assert split("a$$b$$c", (("$$", "$$"),)) == [("text", "a$$b$$c")]


def test_plain_text_passes_as_it_is():
    splitter = TagSplitter(THINK)
    pieces = splitter.feed("<think>a") + splitter.feed("b`") + splitter.feed("")
    pieces += (
        splitter.feed("</think>c") + splitter.feed("d") + splitter.feed("`e") + splitter.close()
    )
    assert [(p.kind, p.text) for p in pieces] == [
        ("thinking", "a"),
        ("thinking", "b`"),
        ("text", "c"),
        ("text", "d"),
        ("text", "`e"),
    ]


# --- calls in the text -------------------------------------------------------------------------


def kimi(*calls):
    inner = "".join(
        f"<|tool_call_begin|>{head}<|tool_call_argument_begin|>{args}<|tool_call_end|>"
        for head, args in calls
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


def test_kimi_sections_are_calls():
    text = "Ok " + kimi(("functions.get.it:0", '{"a": 1}'), ("call_7", "{}")) + "bye"
    assert split(text) == [
        ("text", "Ok "),
        ("tool_call", '{"a": 1}', "get.it", "functions.get.it:0"),
        ("tool_call", "{}", "call_7", "call_7"),
        ("text", "bye"),
    ]


def test_kimi_arguments_are_passed_on_as_they_come():
    splitter = TagSplitter(THINK)
    splitter.feed(kimi(("functions.f:0", "")).split("<|tool_call_end|>")[0])
    assert [p.text for p in splitter.feed('{"a":')] == ['{"a":']
    assert [p.text for p in splitter.feed("1}<|tool")] == ["1}"]
    assert splitter.close() == [Piece("tool_call", "<|tool", None, None, 1)]


def test_kimi_blanks_are_markup_and_other_text_is_text():
    section = kimi(("f:0", "{}"))
    spaced = section.replace("><|tool_call_begin", "> \n<|tool_call_begin")
    assert split(spaced) == [("tool_call", "{}", "f", "f:0")]
    stray = section.replace("><|tool_call_begin", "> so <|tool_call_begin")
    assert split(stray) == [("text", " so "), ("tool_call", "{}", "f", "f:0")]


def test_kimi_calls_may_lack_their_section_or_its_end():
    call = "<|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}"
    assert split(call) == [("tool_call", "{}", "f", "functions.f:3")]
    assert split(f"{call}<|tool_call_end|> x") == [
        ("tool_call", "{}", "f", "functions.f:3"),
        ("text", " x"),
    ]
    assert split("<|tool_call_section_begin|>" + call + "<|tool_call_section_end|>y") == [
        ("tool_call", "{}", "f", "functions.f:3"),
        ("text", "y"),
    ]
    assert split("<|tool_call_begin|>f:0<|tool_call_end|>") == [("tool_call", "", "f", "f:0")]
    late = "<|tool_call_begin|>f:0<|tool_calls_section_begin|>" + call + "<|tool_call_end|>"
    assert split(late) == [("tool_call", "", "f", "f:0"), ("tool_call", "{}", "f", "functions.f:3")]


@pytest.mark.parametrize("text", ["<|tool_call_begin|>" + "a" * 300, "<|tool_call_begin|>f:0"])
def test_kimi_headers_that_are_none_stay_text(text):
    assert split(text) == [("text", text)]
    section = "<|tool_calls_section_begin|>" + text + "<|tool_calls_section_end|>"
    if len(text) > 256:
        assert split(section) == [("text", text)]


def test_kimi_marks_without_a_name_are_no_call():
    text = "<|tool_call_begin|> <|tool_call_argument_begin|>{}"
    assert split(text) == [("text", text)]


def test_kimi_marks_in_code_are_text():
    text = "It writes `<|tool_calls_section_begin|>` first."
    assert split(text) == [("text", text)]


def test_kimi_calls_are_found_though_thoughts_are_not_looked_for():
    splitter = TagSplitter(THINK)
    assert splitter.disable() == []
    assert fold(splitter.feed("<think>" + kimi(("f:0", "{}")))) == [
        ("text", "<think>", None, None),
        ("tool_call", "{}", "f", "f:0"),
    ]


def hermes(body):
    return f"<tool_call>{body}</tool_call>"


def test_hermes_calls_follow_a_thought_or_another_call():
    one = hermes('\n{"name": "f", "arguments": {"a" : [1]}}\n')
    two = hermes('{"arguments":"{\\"b\\":2}","name":"g","id":"x1"}')
    assert split(f"<think>t</think>\n\n{one}\n{two}") == [
        ("thinking", "t"),
        ("text", "\n\n"),
        ("tool_call", '{"a" : [1]}', "f", None),
        ("text", "\n"),
        ("tool_call", '{"b":2}', "g", "x1"),
    ]


@pytest.mark.parametrize("before", ["", "Like this: ", "<think>t</think>Like this: "])
def test_hermes_calls_elsewhere_are_text_unless_configured(before):
    call = hermes('{"name":"f","parameters":{}}')
    text = before.rpartition(">")[2]
    thought = [("thinking", "t")] if "think" in before else []
    assert split(before + call) == [*thought, ("text", text + call)]
    said = [("text", text)] if text else []
    expected = [*thought, *said, ("tool_call", "{}", "f", None)]
    assert split(before + call, (*THINK, HERMES)) == expected


@pytest.mark.parametrize(
    "body", ["", " ", "<function=f>", "{}", '{"name":1}', '{"name":""}', '{"a"}', "{]", "{" * 5000]
)
def test_hermes_sections_that_are_no_call_stay_text(body):
    text = f"\n{hermes(body)} and more"
    assert split("<think></think>" + text) == [("thinking", ""), ("text", text)]
    assert split(f"`{hermes(body)}`", (HERMES,)) == [("text", f"`{hermes(body)}`")]


def test_hermes_arguments_may_hold_the_closing_tag():
    arguments = '{"text":"a</tool_call>\\"</tool_call>"}'
    call = hermes(f'{{"name":"f","arguments":{arguments}}}')
    assert split(f"{call}x", (HERMES,)) == [("tool_call", arguments, "f", None), ("text", "x")]


def test_hermes_calls_may_lack_their_closing_tag():
    for body in ('{"name":"f"}\n', '{"name":"f","arguments":null}'):
        assert split(f"<tool_call>{body}", (HERMES,)) == [("tool_call", "", "f", None)]
    for text in ('<tool_call>{"name":"f', "<tool_call>\n", '<tool_call>{"name":"f","arguments":{'):
        assert split(f"<think>so</think>{text}") == [("thinking", "so"), ("text", text)]


@pytest.mark.parametrize("before", ["", "\n\n"])
def test_a_hermes_call_cut_off_is_no_answer_where_nothing_else_has_its_marks(before):
    """Whatever of it has arrived: with its name and the beginning of its arguments, or without."""
    whole = hermes('{"name": "look", "arguments": {"word": "a </b> c"}}')
    for end in range(2, len(whole)):
        text = before + whole[:end]
        pieces = split(text, (HERMES,))
        assert not "".join(piece[1] for piece in pieces if piece[0] == "text").strip(), text
        call = next(piece for piece in pieces if piece[0] == "tool_call")
        assert call[2] == ("look" if '"look"' in text else None)
        assert call[1] in whole
        assert '"word": "a </b> c"' not in text or '"word": "a </b> c"' in call[1]
    assert split("<tool_call>{so", (HERMES,)) == [("text", "<tool_call>{so")]
    assert split("1 <", (HERMES,)) == [("text", "1 <")]


# --- properties --------------------------------------------------------------------------------

MARKS = sorted({mark for pair in (*ALL, HERMES) for mark in pair} | set(KIMI_OPENINGS))
REMOVED = [
    *MARKS,
    "<|tool_call_section_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
]
fragments = st.sampled_from(
    [
        *(*REMOVED, *(m[:-1] for m in MARKS), *(m[1:] for m in MARKS), "<", "`", "```", "\n", " "),
        *('"', "a", "functions.f:0", '{"name":"f"}', "é😀", "<|channel|>"),
    ]
)
texts = st.lists(fragments | st.text(max_size=3), max_size=12).map("".join)
options = st.fixed_dictionaries(
    {"starts_in_reasoning": st.booleans(), "anywhere": st.booleans()},
    optional={"pairs": st.sampled_from([THINK, ALL, (*ALL, HERMES), (HERMES,), ()])},
)


def cut(text, places):
    at = sorted({min(p, len(text)) for p in places})
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


@given(texts, st.lists(st.integers(0, 120), max_size=12), options)
def test_cuts_change_nothing(text, places, kw):
    whole = fold(feed([text], **kw))
    assert fold(feed(cut(text, places), **kw)) == whole
    assert fold(feed(list(text), **kw)) == whole


def is_left(kept, text, marks):
    """Whether this is what is left of a text if some of the marks in it are taken out."""
    places = {0}
    for letter in [*kept, ""]:
        reached = set()
        while places:
            at = places.pop()
            places |= {at + len(mark) for mark in marks if text.startswith(mark, at)}
            reached |= {at + 1} if letter and text.startswith(letter, at) else set()
            if not letter and at == len(text):
                return True
        places = reached
    return False


@given(texts, st.booleans(), st.booleans())
@example("\n<think>a</think>b", False, False)
@example("</reasoning></mm:think></reasoning></mm:think>", False, False)
def test_every_character_is_in_one_piece_or_in_a_mark(text, inside, anywhere):
    """Marks of calls and blanks between them are markup; all else must be found again in order."""
    for kind in ("tags", "calls"):
        if kind == "tags":
            text = text.replace("tool_call", "tool-call").replace("<|channel|>", "<|channel|")
        pieces = feed([text], ALL, starts_in_reasoning=inside, anywhere=anywhere)
        marks = REMOVED if any(block[0] == "thinking" for block in fold(pieces)) else []
        if kind == "calls":
            marks = [*REMOVED, *" \n\t\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0"]
            if any(p.kind == "tool_call" and p.name == "f" for p in pieces):
                marks.append("functions.f:0")
        blank = text[: len(text) - len(text.lstrip())]
        if pieces and pieces[0].kind == "thinking" and pieces[0].text.startswith(blank) and blank:
            # The blanks before the tag that opened the answer stand at the thought's beginning.
            text = text[len(blank) :]
            pieces[0] = pieces[0]._replace(text=pieces[0].text[len(blank) :])
        assert is_left("".join(piece.text for piece in pieces), text, marks), (text, pieces)


@given(texts, st.integers(0, 120), options)
def test_what_is_held_is_never_longer_than_a_mark(text, at, kw):
    """Apart from what follows the end of an inner thought, which may yet be of the outer one."""
    pairs = [p for p in kw.get("pairs", THINK) if p != HERMES]
    kw = {**kw, "pairs": pairs}
    text, inside = text[:at].replace("tool_call>", ""), kw["starts_in_reasoning"]
    splitter = TagSplitter(**kw)
    fed = splitter.feed(text)
    held = "".join(piece.text for piece in splitter.close())
    blank = len(text) - len(text.lstrip()) if not fed else 0
    header = 256 if "<|tool_call_begin|>" in text or "<|channel|>" in text else 0
    inner = max((len(text) for opener, _ in pairs if text.count(opener) > 1 - inside), default=0)
    assert len(held) <= max(len(m) for m in MARKS) + blank + header + inner


words = st.text("ab c\n", min_size=1, max_size=4).map(lambda word: word + "x")
nested = st.recursive(
    words,
    lambda inner: st.lists(words | inner.map("<think>{}</think>".format)).map("".join),
    max_leaves=10,
)


@given(nested, st.integers(0, 3), words, st.booleans(), st.lists(st.integers(0, 60), max_size=5))
def test_nested_and_surplus_tags_leave_the_thought_and_the_answer(
    thought, more, answer, at, places
):
    text = f"<think>{thought}</think>" + "</think>" * more + answer + "</think>" * more
    whole = fold(feed([text], anywhere=at))
    assert [(kind, said) for kind, said, *_ in whole] == [("thinking", thought), ("text", answer)]
    assert fold(feed(cut(text, places), anywhere=at)) == whole


@given(texts)
def test_text_without_any_mark_is_itself(text):
    text = text.replace("<", "").replace("[", "")
    assert split(text, ALL) == ([("text", text)] if text else [])


safe = st.text(st.characters(exclude_characters="<[`", codec="utf-8"), max_size=8)


@given(st.lists(st.tuples(safe, safe), min_size=1, max_size=4), st.sampled_from(ALL[:-1]))
def test_thoughts_written_into_a_text_come_out_again(sections, pair):
    opener, closer = pair
    text = "".join(f"{opener}{thought}{closer}{said}" for thought, said in sections)
    found = split(text, ALL, anywhere=True)
    expected = [
        ("thinking", t) if i == 0 else ("text", t) for s in sections for i, t in enumerate(s)
    ]
    assert found == [block for block in expected if block[1] or block[0] == "thinking"]
    first, rest = sections[0], text.split(closer, 1)[1]
    assert split(text, ALL) == [("thinking", first[0]), *([("text", rest)] if rest else [])]
