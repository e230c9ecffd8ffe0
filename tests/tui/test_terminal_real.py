"""The terminal with a real model behind a real server: it thinks, folds, shows and comes back."""

from __future__ import annotations

import re

import pytest

from mull.local import weights

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not weights.is_installed(), reason="`mull local install` was not run"),
]


def test_a_real_thought_is_folded_shown_hidden_and_there_again(start):
    terminal = start("-m", "local/smollm2", "--tools", "none", "--max-tokens", "120")
    terminal.wait_for("/help lists commands", 60)
    terminal.say("Why is the sky blue?")
    folded = re.compile(r"Thought for [\d.]+ s · ~?\d+ tokens")
    terminal.wait_for(folded, 120)
    terminal.wait_for(lambda shown: "· Esc interrupts" not in shown.text, 120)
    terminal.say("/view hidden")
    terminal.wait_for("thoughts: hidden")
    terminal.say("/view preview")
    terminal.wait_for(folded)
    terminal.type("/quit\r")
    terminal.end()
    (reference,) = re.findall(r"mull --session (\S+)", terminal.everything)
    again = start("--session", reference, "--tools", "none", "--view", "full")
    again.wait_for("Resumed session", 60)
    assert "Why is the sky blue?" in again.everything
    assert folded.search(again.everything)
