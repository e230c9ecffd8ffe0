"""The failures of other clients that mull is tested against, and the tests that do it.

Each id stands for something that really happened to users of reasoning models. A test takes part
by having the id in its name (`test_b07_…`) or docstring.
"""

from __future__ import annotations

import re
from pathlib import Path

CASES = {
    "A01": "a reasoning tag is cut in two by the network",
    "A03": "ordinary text with `<` in it is held back or taken for a tag",
    "A04": "only the closing tag comes, the opening one was in the prompt",
    "A05": "an answer that speaks about `<think>` loses text",
    "A09": "the answer is cut off inside the thought",
    "A11": "white space at the start of the answer is eaten",
    "A12": "Harmony channel markup shows up in the answer",
    "A14": "a tool call drafted inside a thought is executed",
    "B01": "the reasoning field was renamed and reasoning is lost",
    "B02": "the same reasoning comes in two fields and is doubled",
    "B05": "one delta ends the reasoning and starts the answer",
    "B06": "deltas of white space alone are dropped",
    "B07": "an empty reasoning string is taken for none",
    "B08": "content is a list with thinking inside",
    "B09": "a redacted block comes whole, without deltas, and is dropped",
    "B11": "a block with a signature and no text is dropped",
    "B12": "fragments of reasoning details are replayed as separate entries",
    "B13": "parts of a summary run together, or break at every word",
    "B15": "raw reasoning of the Responses API is not read",
    "B16": "Gemini's thoughts end up in the answer",
    "B19": "tool calls without index or id run together",
    "B20": "Gemini's signature inside an OpenAI-shaped call is lost",
    "B21": "the answer lands in the reasoning field and is promoted silently",
    "C01": "a character is cut in two by the network",
    "C02": "comments that keep the stream alive break the parser",
    "C04": "an error inside a successful stream is taken for an empty answer",
    "C05": "a cut stream counts as complete, or a complete one as cut",
    "C07": "the idle timer ignores reasoning",
    "C09": "usage comes in unexpected places and is lost or ends the turn",
    "D01": "reasoning is missing on messages that call tools",
    "D02": "messages that no model wrote lack the required field",
    "D04": "strict providers are sent a reasoning field they refuse",
    "D05": "reasoning goes back under another name than it came",
    "D07": "a tool call is replayed without the thinking before it",
    "D08": "interleaved thinking is replayed in another order",
    "D09": "a replayed answer ends in thinking",
    "D11": "thinking is off and the history still holds thoughts",
    "D12": "foreign thoughts become visible text",
    "D13": "switching the model poisons the session",
    "D15": "Gemini's signature is not returned on the part it came on",
    "D16": "parallel Gemini calls are replayed apart",
    "D17": "a reasoning item is sent without the item after it",
    "D19": "items are referenced that were never stored",
    "D21": "encrypted reasoning is refused, and what is sent in its place",
    "D23": "old thoughts are dropped by the server unless asked to keep them",
    "D25": "a request ends with an empty assistant message",
    "E01": "the budget is not under max_tokens",
    "E03": "sampling parameters are refused beside thinking",
    "E04": "a forced tool is refused beside thinking",
    "E05": "budgets are sent to models that think adaptively",
    "E06": "thoughts are hidden because nobody asked to see them",
    "E07": "an effort is sent that the model does not have",
    "E09": "tools and reasoning are refused on Chat Completions",
    "E10": "off is not off, and nobody says so",
    "E12": "thinking needs a stream",
    "E14": "parameters change between turns and cost the prompt cache",
    "F01": "reasoning is counted, and paid for, twice",
    "F03": "the meter counts thoughts that will not be sent",
    "G01": "compression parts a call from its result, or from its thought",
    "G02": "a summary of thinking alone replaces the history with nothing",
    "G03": "a side call thinks as hard as the session and has no room left to answer",
    "G05": "a title is blank, or is the model's thoughts",
    "S01": "an interrupted answer is lost, or sent back as if it were whole",
    "S02": "a poisoned history is refused for ever",
    "S03": "an answer of thinking alone passes for success, or is asked for without end",
    "S05": "reasoning is lost when a session is saved and opened again",
    "R01": "thoughts are shown late, twice, or below the answer",
    "R02": "hiding thoughts loses them, or changes what is sent",
    "R03": "a blank thought is drawn as an empty box",
    "R04": "thoughts get into a pipe's output, or are missing from its JSON",
}


def named_by(folder: Path) -> dict[str, list[str]]:
    """The tests that name each case, by `file::test`."""
    found: dict[str, list[str]] = {case: [] for case in CASES}
    pattern = re.compile(r"^( *)def (test_\w+)\(.*?\n(?=^\1\S|^\S|\Z)", re.MULTILINE | re.DOTALL)
    for file in sorted(folder.rglob("test_*.py")):
        for match in pattern.finditer(file.read_text()):
            name, text = match.group(2), match.group(0)
            for case in CASES:
                if re.search(rf"(^|_){case.lower()}(_|$)", name) or f"{case}" in text.split():
                    found[case].append(f"{file.relative_to(folder.parent)}::{name}")
    return found


def page(root: Path) -> str:
    """The table of cases."""
    lines = [
        "# Failures we are tested against",
        "",
        "Each of these happened to users of other clients. The tests that name a case show that it"
        " does not happen here.",
        "",
        "| case | what went wrong | tests |",
        "|---|---|---|",
    ]
    for case, tests in named_by(root / "tests").items():
        shown = "<br>".join(f"`{test}`" for test in tests) or "none yet"
        lines.append(f"| {case} | {CASES[case]} | {shown} |")
    return "\n".join(lines) + "\n"
