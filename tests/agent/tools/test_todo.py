"""The model's plan, and its questions to the user."""

import asyncio

from mull.agent.setup import load_setup
from mull.agent.toolbox import Toolbox
from mull.agent.tools.approve import ApprovalAnswer, UserQuestion
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.trained import own_call
from mull.neutral.blocks import ToolCallBlock
from tool_calls import answer, call, fail, fill, preview, use

ITEMS = [
    {"text": "look", "status": "done"},
    {"text": "mend\x1b[2J\nit", "status": "in_progress"},
    {"text": "check"},
]


def test_the_list_is_shown_and_kept(tmp_path):
    toolbox = Toolbox(load_setup(), tmp_path)
    tool = toolbox.all["todo"]
    shown = "[x] look\n[~] mend\\x1b[2J …\n[ ] check"
    assert asyncio.run(answer(tool, call("todo", items=ITEMS))).output == shown
    assert preview(tool, items=ITEMS).title == "todo: 1 of 3 done"
    assert [(item.text, item.status) for item in toolbox.todo][2] == ("check", "pending")
    asyncio.run(answer(tool, call("todo", items=[])))
    assert toolbox.todo == ()


def test_what_is_no_list_is_refused(tmp_path):
    workspace = fill(tmp_path, {})
    assert "items" in fail(workspace, "todo")
    assert "Invalid enum value" in fail(workspace, "todo", items=[{"text": "x", "status": "soon"}])
    assert use(workspace, "todo", items=[]) == "the list is empty"


def test_the_lists_of_other_agents_are_understood(tmp_path):
    tools = builtin_tools(fill(tmp_path, {}))
    theirs = {"todos": [{"content": "x", "status": "completed", "activeForm": "doing x"}]}
    meant = own_call(ToolCallBlock("c", "TodoWrite", theirs), tools).input
    assert meant == {"items": [{"text": "x", "status": "done"}]}
    plan = {"explanation": "why", "plan": [{"step": "x", "status": "in_progress"}]}
    meant = own_call(ToolCallBlock("c", "update_plan", plan), tools).input
    assert meant == {"items": [{"text": "x", "status": "in_progress"}]}
    assert theirs["todos"][0]["status"] == "completed"


class Person:
    def __init__(self, said):
        self.said = said
        self.heard = []

    async def ask(self, request):
        return ApprovalAnswer("yes")

    async def question(self, question):
        self.heard.append(question)
        return self.said


def asked(folder, approver, **given):
    tool = Toolbox(load_setup(), folder, approver=approver).all["ask_user"]
    return asyncio.run(answer(tool, call("ask_user", **given))).output


def test_a_person_answers(tmp_path):
    person = Person(" tabs ")
    assert asked(tmp_path, person, question="Tabs?\x07", options=["tabs", "spaces"]) == "tabs"
    assert person.heard == [UserQuestion("Tabs?\\x07", ("tabs", "spaces"))]


def test_no_answer_and_nobody_are_told_to_the_model(tmp_path):
    class Approving:
        async def ask(self, request):
            return ApprovalAnswer("yes")

    for approver in (None, Approving(), Person(None), Person("  ")):
        assert asked(tmp_path, approver, question="Tabs?").startswith("There is nobody to answer.")


def test_questions_of_other_agents_are_understood(tmp_path):
    tools = builtin_tools(fill(tmp_path, {}))
    one = {"question": "Which?", "header": "H", "options": [{"label": "a", "description": "b"}]}
    meant = own_call(ToolCallBlock("c", "AskUserQuestion", {"questions": [one]}), tools).input
    assert meant == {"question": "Which?", "options": ["a"]}
