"""The gate: who is asked, once, and what is remembered."""

import asyncio
import dataclasses

import pytest

from mull.agent.functions import Tool
from mull.agent.tools.approve import (
    ApprovalAnswer,
    ApprovalRequest,
    Gate,
    offered,
    unknown_rules,
)
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import Preview
from mull.neutral.errors import ConfigError
from mull.policy.approval import parse_rule
from tool_calls import call, fill


class Person:
    """Answers in turn, and keeps what was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def ask(self, request):
        self.asked.append(request)
        return self.answers.pop(0)


@pytest.fixture
def tools(tmp_path):
    return builtin_tools(fill(tmp_path, {"a.txt": "a\n", "src/b.txt": "b\n"}))


def admit(gate, tools, *calls):
    """What the model is told for each call; None: it runs."""

    async def all_at_once():
        return await asyncio.gather(*(gate.admit(tools[c.name].prepare(c)) for c in calls))

    return asyncio.run(all_at_once())


def test_reading_is_not_asked_about_and_changing_is(tools):
    person = Person(ApprovalAnswer("yes"), ApprovalAnswer("yes"))
    gate = Gate(approver=person)
    make = call("run", command="make test")
    assert admit(gate, tools, call("read", path="a.txt"), make) == [None, None]
    assert person.asked == [
        ApprovalRequest(
            "c1",
            "run",
            "built in",
            Preview("run: make test", "make test", "command"),
            ("run(make *)",),
            arguments={"command": "make test"},
        )
    ]
    assert admit(gate, tools, make) == [None]
    assert len(person.asked) == 2


def test_an_answer_for_the_session_is_not_asked_for_again(tools):
    person = Person(ApprovalAnswer("session"), ApprovalAnswer("session", rule="run(git *)"))
    gate = Gate(approver=person)
    assert admit(gate, tools, call("run", command="make")) == [None]
    assert admit(gate, tools, call("run", command="make")) == [None]
    assert admit(gate, tools, call("run", command="git status")) == [None]
    assert admit(gate, tools, call("run", command="git log -1")) == [None]
    assert len(person.asked) == 2
    assert [rule.text for rule in gate.session] == ["run(make *)", "run(git *)"]


def test_calls_side_by_side_ask_one_question_at_a_time_and_share_an_answer(tools):
    class Slow(Person):
        open = 0

        async def ask(self, request):
            self.open += 1
            assert self.open == 1
            await asyncio.sleep(0)
            self.open -= 1
            return await super().ask(request)

    person = Slow(ApprovalAnswer("session", rule="run(make *)"), ApprovalAnswer("no"))
    calls = [call("run", command=c) for c in ("make a", "make b", "rm x", "make c")]
    told = admit(Gate(approver=person), tools, *calls)
    assert [text is None for text in told] == [True, True, False, True]
    assert [request.preview.title for request in person.asked] == ["run: make a", "run: rm x"]


def test_no_is_told_to_the_model_with_what_the_person_says(tools):
    make = call("run", command="make")
    gate = Gate(approver=Person(ApprovalAnswer("no"), ApprovalAnswer("no", " use ninja ")))
    assert admit(gate, tools, make) == [
        "not run: the user refused; ask what to do instead, or continue without it"
    ]
    assert admit(gate, tools, make) == ["not run: the user refused, and says: use ninja"]


class Kept:
    """Keeps rules in memory; a broken one keeps none."""

    def __init__(self, *, breaks=False):
        self.breaks = breaks
        self.rules = []

    def preview(self, rules):
        return f"tools.toml, line 1:\n{rules}"

    def keep(self, rules):
        if self.breaks:
            raise ConfigError("cannot write tools.toml")
        self.rules += rules


def test_always_is_kept_and_a_file_that_cannot_be_written_holds_nothing_up(tools):
    kept, person = Kept(), Person(ApprovalAnswer("always", rule="run(make *)"))
    gate = Gate(approver=person, keeper=kept)
    assert admit(gate, tools, call("run", command="make a"), call("run", command="make b")) == [
        None,
        None,
    ]
    assert kept.rules == ["run(make *)"]
    assert person.asked[0].kept == "tools.toml, line 1:\n('run(make *)',)"
    told = []
    gate = Gate(approver=Person("always"), keeper=Kept(breaks=True), warn=told.append)
    assert admit(gate, tools, call("run", command="make")) == [None]
    assert told == ["cannot write tools.toml"]


NO_ANSWERS = [1, 0, None, 1.0, [True], "", object(), ApprovalAnswer("once"), ApprovalAnswer(True)]


@pytest.mark.parametrize("said", NO_ANSWERS, ids=lambda said: type(said).__name__)
def test_what_is_no_answer_lets_nothing_run(tools, said):
    told = []
    gate = Gate(approver=Person(said), keeper=Kept(), warn=told.append)
    assert admit(gate, tools, call("run", command="make"))[0].startswith("not run: ")
    assert gate.session == []
    if said != "":
        assert told[0].startswith("approve failed, so run was not run: the answer was ")
        assert 'use True, False, "yes", "always", "session", "no", or a reason for no' in told[0]


@pytest.mark.parametrize("said", [True, "yes", ApprovalAnswer("yes")], ids=repr)
def test_yes_has_three_forms_and_allows_one_call(tools, said):
    gate = Gate(approver=Person(said, "YES, and always"))
    make = call("run", command="make")
    assert admit(gate, tools, make) == [None]
    assert admit(gate, tools, make) == ["not run: the user refused, and says: YES, and always"]
    assert gate.session == []


def test_a_rule_that_is_none_lets_nothing_run(tools):
    told = []
    person = Person(ApprovalAnswer("always", rule="run("))
    gate = Gate(approver=person, keeper=Kept(), warn=told.append)
    assert admit(gate, tools, call("run", command="make")) == [
        "not run: asking for approval failed"
    ]
    assert '"run(" is not a rule' in told[0].replace("`", '"')
    assert gate.session == []


@pytest.mark.parametrize(
    ("tool", "given", "rules", "words"),
    [
        ("run", {"command": "git status -s"}, ("run(git status *)",), "git status *"),
        ("run", {"command": "make"}, ("run(make *)",), "make *"),
        ("edit", {"path": "src/b.txt", "old": "b", "new": "c"}, ("edit(src/**)",), "edit src/**"),
        ("edit", {"path": "a.txt", "old": "a", "new": "c"}, ("edit(./a.txt)",), "edit ./a.txt"),
        ("run", {"command": "a\nb"}, (), None),
        ("run", {"command": f"touch {'x' * 200}"}, (), None),
    ],
)
def test_the_narrow_rule_is_offered_and_none_that_cannot_be_read(tools, tool, given, rules, words):
    person = Person("no")
    admit(Gate(approver=person, keeper=Kept()), tools, call(tool, **given))
    (request,) = person.asked
    assert request.rules == rules
    assert [choice for choice, _ in offered(request)] == (
        ["yes", "always", "session", "no"] if rules else ["yes", "no"]
    )
    assert words is None or all(word.endswith(f": {words}") for _, word in offered(request)[1:3])


def test_what_cannot_be_kept_is_not_offered_for_ever(tools):
    class Full(Kept):
        def preview(self, rules):
            raise ConfigError("cannot add")

    person = Person("no", "no")
    for keeper in (None, Full()):
        admit(Gate(approver=person, keeper=keeper), tools, call("run", command="make"))
        assert [choice for choice, _ in offered(person.asked[-1])] == ["yes", "session", "no"]


@pytest.mark.parametrize("mode", ["ask", "accept-edits"])
def test_what_a_call_wants_beyond_its_rules_is_asked_about(tools, mode):
    """And no rule is offered for it: a yes is for this call."""
    allowed = parse_rule("allow", "run(make)")
    prepared = tools["run"].prepare(call("run", command="make"))
    wanting = dataclasses.replace(prepared, wants="wants the network: example.org")
    person = Person("yes", "session", "no")
    gate = Gate(mode, [allowed], person, Kept())
    assert asyncio.run(gate.admit(prepared)) is None
    assert person.asked == []
    told = [asyncio.run(gate.admit(wanting)) for _ in range(3)]
    assert [text is None for text in told] == [True, True, False]
    assert {request.wants for request in person.asked} == {"wants the network: example.org"}
    assert [choice for choice, _ in offered(person.asked[0])] == ["yes", "no"]
    assert gate.session == []
    assert asyncio.run(Gate("yes").admit(wanting)) is None
    deny = parse_rule("deny", "run(make)")
    assert "denies it" in asyncio.run(Gate("yes", [deny]).admit(wanting))


def test_where_nobody_can_be_asked_the_refusal_says_what_to_do(tools):
    assert admit(Gate(), tools, call("run", command='make "hi"')) == [
        "not run: run needs approval and there is nobody to ask: run mull with --yes, or allow it"
        ' in tools.toml, [tools] allow = ["run(make *)"]'
    ]


def test_modes_and_rules_are_obeyed(tools):
    make = call("run", command="make")
    deny = parse_rule("deny", "run(make)", "tools.toml")
    assert admit(Gate("yes"), tools, make) == [None]
    assert admit(Gate("yes", [deny]), tools, make) == [
        "not run: the rule run(make) (tools.toml) denies it; do not try to work around this"
    ]
    assert "read-only" in admit(Gate("read-only"), tools, make)[0]
    assert admit(Gate("ask", [parse_rule("allow", "run(make)")]), tools, make) == [None]


def test_rules_see_where_a_path_really_leads(tools, tmp_path):
    (tmp_path / "src/out").symlink_to("../a.txt")
    gate = Gate(rules=[parse_rule("allow", "edit(src/**)")])
    assert admit(gate, tools, call("edit", path="./src/../src/b.txt", old="b", new="c")) == [None]
    for path in ("src/../a.txt", "src/out"):
        assert "needs approval" in admit(gate, tools, call("edit", path=path, old="a", new="c"))[0]


def test_other_tools_are_asked_about_as_a_whole():
    def deploy(where: str) -> str:
        return where

    tools = {"deploy": Tool(handler=deploy, changes=True)}
    person = Person(ApprovalAnswer("session"))
    gate = Gate(approver=person)
    assert admit(gate, tools, call("deploy", where="a")) == [None]
    assert admit(gate, tools, call("deploy", where="b")) == [None]
    assert person.asked[0].rules == ("deploy",)
    assert person.asked[0].source == "function"


def test_rules_of_tools_that_do_not_exist_are_found():
    rules = [parse_rule("deny", text) for text in ("run", "rum(rm *)", "mcp__*", "*")]
    assert unknown_rules(rules, ["run", "edit"]) == ["rum(rm *)"]
