"""Prompts of MCP servers among the commands, and resources that a message mentions."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from mcp_servers import plain
from mull.agent.setup import load_setup
from mull.agent.toolbox import Toolbox
from mull.neutral.blocks import TextBlock
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message
from mull.tui.commands.complete import offers
from mull.tui.commands.known import Known
from mull.tui.commands.prompts import attach_resources
from mull.tui.commands.table import run_command
from tui.fronts import at_terminal


@pytest.fixture
def served(tmp_path):
    """Lets a body use a conversation whose server has a prompt and resources."""
    setup = load_setup()
    setup.config = msgspec.structs.replace(setup.config, mcp={"a": plain("--extra")})
    toolbox = Toolbox(setup, tmp_path)

    def served(body):
        async def main(talk):
            await toolbox.start()
            try:
                return await body(talk)
            finally:
                await toolbox.close()
                await talk.session.engine.close()

        with at_terminal(tmp_path, toolbox=toolbox) as talk:
            return asyncio.run(main(talk)), talk

    return served


def test_a_prompt_is_a_command_that_says_its_message(served):
    async def body(talk):
        await run_command(talk, "a:visit Rome slow")
        with pytest.raises(LocalError, match=r"missing place: /a:visit PLACE \[STYLE\]"):
            await run_command(talk, "a:visit")
        with pytest.raises(LocalError, match="did you mean /a:visit"):
            await run_command(talk, "a:vist")
        await run_command(talk, "help")
        return talk.text

    shown, talk = served(body)
    said = "Visit {'place': 'Rome', 'style': 'slow'}, see @secret.txt"
    assert talk.done == [("submit", Message(role="user", blocks=(TextBlock(said),)))]
    assert "/a:visit   Plan a visit." in shown


def test_prompts_are_offered_with_the_commands(served):
    async def body(talk):
        return [offer.text for offer in offers(Known(talk), "/a:")]

    assert served(body)[0] == ["/a:visit"]


def test_resources_that_are_mentioned_are_attached_once(served):
    async def body(talk):
        text = "see @a:memo://1, @a:memo://1 and @b:memo://2 and @a:file"
        return await attach_resources(text, talk.session)

    (blocks, notes), _ = served(body)
    assert blocks == [TextBlock("\n\nmemo://1:\ninside memo://1")]
    assert notes == []
