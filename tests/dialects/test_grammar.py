"""The grammar of a turn: what it lets through, and that no text of it can hold a mark.

The second is not tried with examples but proved: for every mark, which states of the automaton that
looks for it can be reached through which rule.
"""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from mull.catalog.resolve import resolve
from mull.dialects.grammar import turn_grammar
from mull.dialects.registry import decode_response, decoder, encode_request
from mull.neutral.assemble import assemble
from mull.neutral.errors import ConfigError
from mull.neutral.messages import user
from mull.neutral.request import AnswerFormat, NamedTool, Request, Tool
from mull.neutral.thinking import ThinkingPlan

PLAN = ThinkingPlan("default")
TARGET = resolve("local/smollm2")
FORM = TARGET.compat.grammar
SPELT = dict(zip(FORM.close, ("</", "think", ">"), strict=True))
MARKS = (
    "<think",
    "</think",
    "<tool_call",
    "</tool_call",
    "<tool_response",
    "<|im_start|>",
    "<|im_end|>",
    "<<",
    "< T",
    "< /",
    "<\n",
    "<=|",
)

READ = Tool(
    "read",
    "Read a file",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "mode": {"enum": ["text", "bytes"]},
        },
        "required": ["path"],
    },
)
NOW = Tool("now", "The time")
TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "size": {"type": ["number", "null"]},
        "under": {"type": "array", "items": {"$ref": "#"}},
        "kind": {"$ref": "#/$defs/kind"},
    },
    "required": ["name", "under"],
    "$defs": {"kind": {"anyOf": [{"const": "file"}, {"type": "boolean"}]}},
}
GRAMMARS = {
    "plain": turn_grammar(FORM),
    "tools": turn_grammar(FORM, (READ, NOW)),
    "required": turn_grammar(FORM, (READ, NOW), "required"),
    "named": turn_grammar(FORM, (READ, NOW), NamedTool("now")),
    "schema": turn_grammar(FORM, wanted=AnswerFormat(TREE)),
    "any": turn_grammar(FORM, wanted=AnswerFormat()),
    "both": turn_grammar(FORM, (READ,), "auto", AnswerFormat(TREE)),
    "off": turn_grammar(FORM, thinks=False),
}
PROMPT, OPEN, CLOSE = "<|im_start|>assistant\n", "<think>", "</think>\n\n"
CALL = '<tool_call>\n{"name": "read", "arguments": {"path": "a.txt"}}\n</tool_call>'
TIME = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
DEEP = '{"name": "a", "size": null, "under": [{"name": "b", "under": []}], "kind": "file"}'


# --- a reader of grammars (GBNF): a rule is a tree of ("text" | "set" | "rule" | ...) nodes

_TOKEN = re.compile(
    r"""\s*(?:(?P<rule>[\w-]+)(?!\s*::=)|"(?P<text>(?:\\.|[^"\\])*)"|\[(?P<set>(?:\\.|[^\]\\])*)\]"""
    r"""|<\[(?P<token>\d+)\]>|(?P<sign>[()|*+?])|\{(?P<times>[\d,]+)\})"""
)
_ESCAPE = re.compile(r"\\(x[0-9A-F]{2}|.)")


def plain(text):
    """The characters of a literal or a set, escapes resolved; `-` of a range stays one."""
    known = {"n": "\n", "r": "\r", "t": "\t"}
    return _ESCAPE.sub(
        lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 3 else known.get(m[1], m[1]), text
    )


def read_rules(grammar):
    rules = {}
    for line in grammar.splitlines():
        name, _, body = line.partition(" ::= ")
        assert name not in rules
        tokens, at = [], 0
        while body[at:].strip():
            found = _TOKEN.match(body, at)
            assert found, body[at:]
            tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        rules[name] = choice(tokens)
        assert not tokens
    return rules


def choice(tokens):
    ways = [sequence(tokens)]
    while tokens[:1] == [("sign", "|")]:
        tokens.pop(0)
        ways.append(sequence(tokens))
    return ("choice", ways)


def sequence(tokens):
    parts = []
    while tokens and tokens[0] not in (("sign", "|"), ("sign", ")")):
        kind, said = tokens.pop(0)
        if (kind, said) == ("sign", "("):
            part = choice(tokens)
            assert tokens.pop(0) == ("sign", ")")
        elif kind == "text":
            part = ("text", plain(said))
        elif kind == "token":
            part = ("text", SPELT[int(said)])
        elif kind == "set":
            part = ("set", character_set(said))
        else:
            assert kind == "rule", said
            part = (kind, said)
        if tokens and tokens[0][0] == "times":
            low, _, high = tokens.pop(0)[1].partition(",")
            part = ("times", part, int(low), int(high or low))
        elif tokens and tokens[0] in (("sign", "*"), ("sign", "+"), ("sign", "?")):
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[tokens.pop(0)[1]]
            part = ("times", part, low, high)
        parts.append(part)
    return ("sequence", parts)


def character_set(said):
    """A function that tells whether a character is in it."""
    fits = re.compile(f"[{said}]", re.DOTALL)
    return lambda one: fits.fullmatch(one) is not None


# --- does it let a text through?


def accepts(grammar, text):
    rules = read_rules(grammar)

    @cache
    def rule(name, at):
        return ends(rules[name], at)

    def ends(node, at):
        kind = node[0]
        if kind == "text":
            return {at + len(node[1])} if text.startswith(node[1], at) else set()
        if kind == "set":
            return {at + 1} if at < len(text) and node[1](text[at]) else set()
        if kind == "rule":
            return rule(node[1], at)
        if kind == "choice":
            return set().union(*(ends(way, at) for way in node[1]))
        places = {at}
        if kind == "sequence":
            for part in node[1]:
                places = set().union(*(ends(part, place) for place in places))
            return places
        _, part, low, high = node
        found, count = ({at} if low == 0 else set()), 0
        while places and (high is None or count < high):
            places = set().union(*(ends(part, place) for place in places)) - found
            count += 1
            found |= places if count >= low else set()
        return found

    return len(text) in rule("root", 0)


@pytest.mark.parametrize(
    ("which", "turns"),
    [
        ("plain", ["Hello!", "3 < 5, and 5 <= 7.", "Yes.\n\nNo."]),
        ("tools", ["Hello!", CALL, TIME]),
        ("required", [CALL, TIME]),
        ("named", [TIME]),
        ("schema", [DEEP, '{"name": "", "under": []}']),
        ("any", ["{}", '{"a": [1, -2.5, "x\\n", {"b": true}]}']),
        ("both", [DEEP, CALL]),
        ("off", ["Hello!"]),
    ],
)
def test_a_turn_thinks_or_not_and_then_answers_as_it_may(which, turns):
    grammar = GRAMMARS[which]
    for turn in {"Hello!", CALL, TIME, DEEP, *turns}:
        may = turn in turns or (which in ("plain", "tools", "any", "off") and turn == DEEP)
        assert accepts(grammar, f"{PROMPT}{turn}") is may, turn
        thinks = may and which != "off"
        assert accepts(grammar, f"{PROMPT}{OPEN}I look.\n{CLOSE}{turn}") is thinks, turn
        assert not accepts(grammar, f"{PROMPT}{OPEN}I look.\n{turn}"), turn
    assert not accepts(grammar, f"{PROMPT}{OPEN}I look.\n")


@pytest.mark.parametrize(
    "arguments", ['{"path": "a", "limit": 3, "mode": "bytes"}', '{"path": ""}']
)
def test_a_call_may_have_the_arguments_of_its_tool(arguments):
    assert accepts(GRAMMARS["tools"], PROMPT + CALL.replace('{"path": "a.txt"}', arguments))


@pytest.mark.parametrize(
    "arguments",
    ["{}", '{"limit": 3}', '{"path": 3}', '{"path": "a", "mode": "x"}', '{"path": "a", "z": 1}'],
)
def test_a_call_has_no_other_arguments(arguments):
    assert not accepts(GRAMMARS["tools"], PROMPT + CALL.replace('{"path": "a.txt"}', arguments))


def test_a_budget_may_end_within_the_closing_tag():
    for begun in ("", "</", "</think"):
        assert accepts(GRAMMARS["plain"], f"{PROMPT}{OPEN}I look.\n{begun}{CLOSE}Hello!")


# --- can it write a mark?


def holds(grammar, rule, mark):
    """Whether a text of this rule can hold the mark."""
    return (0, len(mark)) in reached(grammar, mark)[rule]


@cache
def reached(grammar, mark):
    """For every rule, from which state of looking for the mark its texts lead to which.

    A state is how much of the mark the text ends with, the last one means that it was found. A
    rule is the set of pairs of states that its texts lead from and to; the rules are gone through
    until nothing is added.
    """
    rules = read_rules(grammar)
    last = len(mark)
    alphabet = {*mark, "\n", " ", "0", "é"}

    def step(state, one):
        if state == last:
            return last
        said = mark[:state] + one
        return next(n for n in range(len(said), -1, -1) if said.endswith(mark[:n]))

    def through(state, text):
        for one in text:
            state = step(state, one)
        return state

    states = range(last + 1)
    same = {(state, state) for state in states}
    pairs = {name: set() for name in rules}

    def join(left, right):
        to = {state: {d for c, d in right if c == state} for state in states}
        return {(a, d) for a, b in left for d in to[b]}

    def of(node):
        kind = node[0]
        if kind == "text":
            return {(state, through(state, node[1])) for state in states}
        if kind == "set":
            return {
                (state, step(state, one)) for one in alphabet if node[1](one) for state in states
            }
        if kind == "rule":
            return pairs[node[1]]
        if kind == "choice":
            return set().union(*(of(way) for way in node[1]))
        found = same
        if kind == "sequence":
            for part in node[1]:
                found = join(found, of(part))
            return found
        _, part, low, _ = node  # how often at most makes no difference to what is safe
        once, grown = of(part), set()
        while found != grown:
            grown, found = found, found | join(found, once)
        return found if low == 0 else join(once, found)

    while True:
        before = sum(map(len, pairs.values()))
        for name, node in rules.items():
            pairs[name] = of(node)
        if sum(map(len, pairs.values())) == before:
            return pairs


FREE = ("answer", "thought", "line", "sign", "string", "char", "value", "object", "array", "pair")


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("which", GRAMMARS)
def test_no_text_can_hold_a_mark(which, mark):
    grammar = GRAMMARS[which]
    free = [rule for rule in read_rules(grammar) if rule in FREE or rule.startswith("part-")]
    assert {"answer", "thought"} <= {*free}
    assert not [rule for rule in free if holds(grammar, rule, mark)]


@pytest.mark.parametrize(("rule", "escape"), [("char", "\\u"), ("char", "\\/"), ("string", "<\\")])
def test_no_escape_can_spell_a_mark(rule, escape):
    assert not holds(GRAMMARS["both"], rule, escape)


@pytest.mark.parametrize("which", ["plain", "schema", "any", "off"])
def test_without_tools_there_is_no_call(which):
    assert not holds(GRAMMARS[which], "turn", "<tool_call")
    assert holds(GRAMMARS["tools"], "turn", "<tool_call")


@pytest.mark.parametrize(
    ("old", "new", "rule", "mark"),
    [
        ('"<" "="? " "? "-"? [0-9]', '"<"', "answer", "</think"),
        ('"<" "="? " "? "-"? [0-9]', '"<" "="? " "? [0-9/]', "answer", "</think"),
        ('"<" "="? " "? "-"? [0-9]', r'"<" [^a-zA-Z/|<"\\\x00-\x1F]', "answer", "< T"),
        (r"([^<] | sign)*", r"[^|]*", "answer", "<tool_call"),
        (r"line ::= [^<\n]+", r"line ::= [^\n]+", "thought", "<think"),
        (r'"\\" ["\\bfnrt]', r'"\\" ["\\/bfnrtu]', "char", "\\u"),
        (r'[^"\\<\x00-\x1F] | sign', r'[^"\\\x00-\x1F]', "string", "</think"),
    ],
)
def test_a_looser_grammar_would_be_noticed(old, new, rule, mark):
    grammar = GRAMMARS["tools"]
    assert old in grammar
    assert not holds(grammar, rule, mark)
    assert holds(grammar.replace(old, new), rule, mark)


# --- what is sent, and how it is read


def sent(**options):
    request = Request(messages=[user("hi")], **{"thinking": PLAN} | options)
    return json.loads(encode_request(request, TARGET).body)


@pytest.mark.parametrize(
    ("options", "which"),
    [
        ({"tools": (READ, NOW)}, "tools"),
        ({"tools": (READ, NOW), "tool_choice": "auto"}, "tools"),
        ({"tools": (READ, NOW), "tool_choice": "required"}, "required"),
        ({"tools": (READ, NOW), "tool_choice": NamedTool("now")}, "named"),
        ({"format": AnswerFormat(TREE)}, "schema"),
        ({"format": AnswerFormat()}, "any"),
        ({"tools": (READ,), "format": AnswerFormat(TREE)}, "both"),
        ({"thinking": ThinkingPlan("off", thinks=False)}, "off"),
    ],
)
def test_a_request_has_the_grammar_of_its_turn(options, which):
    """Otherwise the server would use its own, which leaves the text before a call free."""
    body = sent(**options)
    assert body["grammar"] == GRAMMARS[which]
    assert body["grammar_type"] == "tool_calls"
    assert body.get("tool_choice", "none") == "none"
    assert "response_format" not in body
    assert [tool["function"]["name"] for tool in body.get("tools", ())] == [
        tool.name for tool in options.get("tools", ())
    ]


@pytest.mark.parametrize("options", [{}, {"tools": (READ,), "tool_choice": "none"}])
def test_of_a_plain_turn_the_servers_own_default_is_that_grammar(options):
    assert not {"grammar", "grammar_type"} & sent(**options).keys()


def test_other_servers_get_no_grammar():
    request = Request(messages=[user("hi")], thinking=PLAN, tools=(READ,))
    for name in ("llama.cpp/some", "openai/gpt-4.1", "vllm/some"):
        body = json.loads(encode_request(request, resolve(name)).body)
        assert not {"grammar", "tool_choice"} & body.keys(), name


def chunk(written, **delta):
    return {"choices": [{"index": 0, "delta": delta}], "timings": {"predicted_n": written}}


def read(*chunks, target=TARGET):
    usage = {"prompt_tokens": 9, "completion_tokens": 30}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    reader = decoder(target)
    text = "".join(
        f"data: {json.dumps(one)}\n\n"
        for one in (*chunks, end, {"choices": [], "usage": usage, "timings": {"predicted_n": 30}})
    )
    events = [*reader.feed(text.encode()), *reader.feed(b"data: [DONE]\n\n"), *reader.close()]
    return assemble(events, target.origin)


def test_a_call_in_its_marks_is_a_call():
    message = read(
        chunk(1, reasoning_content="I"),
        chunk(3, reasoning_content=" look."),
        *(chunk(9 + at, content=one) for at, one in enumerate(CALL)),
    )
    assert [(call.name, call.input) for call in message.tool_calls] == [("read", {"path": "a.txt"})]
    assert not message.text
    assert message.stop_reason == "tool_calls"


@pytest.mark.parametrize(
    ("chunks", "count"),
    [
        ([chunk(1, reasoning_content="I"), chunk(9, content="A")], 1),
        ([chunk(1, reasoning_content="I"), chunk(4, reasoning_content=" see")], 4),
        ([chunk(1, content="A"), chunk(2, content="B")], 0),
        ([chunk(1, reasoning_content="I"), chunk(30, reasoning_content=" see")], 30),
        ([chunk(1, reasoning_content="I"), chunk(99, reasoning_content=" see")], 30),
        ([chunk(None, reasoning_content="I"), chunk("2", content="A")], None),
        ([chunk(1, reasoning_content="I"), chunk(None, reasoning_content=" see")], None),
    ],
)
def test_the_servers_running_count_says_how_much_was_thinking(chunks, count):
    assert sent()["timings_per_token"] is True
    usage = read(*chunks).usage
    assert (usage.input, usage.output, usage.reasoning) == (9, 30, count)


def test_a_whole_answer_says_only_how_long_it_is():
    assert "timings_per_token" not in sent(stream=False)
    message = {"reasoning_content": "I see.", "content": "A"}
    usage = {"prompt_tokens": 9, "completion_tokens": 30}
    whole = {"choices": [{"message": message}], "usage": usage, "timings": {"predicted_n": 30}}
    events = decode_response(json.dumps(whole).encode(), TARGET)
    assert assemble(events, TARGET.origin).usage.reasoning is None


def test_nothing_is_counted_where_the_server_was_not_asked_to():
    other = resolve("openai-compatible/some")
    message = read(chunk(4, reasoning_content="I"), chunk(9, content="A"), target=other)
    assert message.usage.reasoning is None


@pytest.mark.parametrize("as_tool", [True, False])
def test_references_that_lead_on_and_on_are_refused(as_tool):
    chain = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(5_000)}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a0"}}, "$defs": chain}
    tools, wanted = ((Tool("deep", "", schema),), None) if as_tool else ((), AnswerFormat(schema))
    with pytest.raises(ConfigError, match="nested too deeply"):
        turn_grammar(FORM, tools, wanted=wanted)
