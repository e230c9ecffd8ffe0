"""What broke mull once, and the tests that keep it from breaking again: a table of the page on
reliability, written by `python -m tools.attack.breaks`.

A name in the second column is that of a test, which the default run has. `ATTACKED` are attacks of
`make attack` that try the same in other forms.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["BREAKS", "PAGE", "Break", "main", "section", "written_into"]

PAGE = Path(__file__).resolve().parents[2] / "docs/reliability.md"
_BEGIN = "<!-- breaks: written by `python -m tools.attack.breaks` -->"
_END = "<!-- breaks: end -->"
_SECTION = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)


class Break(NamedTuple):
    """What went wrong, the tests of it, and what the attack on it is called, if there is one."""

    what: str
    tests: tuple[str, ...]
    attack: str = ""


_BODIES = "tests/client/test_odd_bodies.py::test_"
_DECODER = "tests/dialects/test_decoder.py::test_"
_HARMLESS = "tests/policy/test_harmless.py::test_"
_GATE = "tests/tui/test_gate.py::test_"
_CALLS = "tests/policy/test_view_calls.py::test_"
_STORE = "tests/store/test_session"
BREAKS = (
    Break(
        "An answer was over, the connection stayed open, and mull waited for minutes",
        ("tests/client/test_ends.py::test_the_end_is_the_end_though_the_connection_stays_open",),
        "connection held open after the answer's own end",
    ),
    Break(
        "Text behind the end of an answer became part of it",
        (f"{_DECODER}nothing_behind_the_end_is_part_of_the_answer",),
        "text after the answer's own end",
    ),
    Break(
        "One event without end was read for ever",
        (f"{_BODIES}one_event_without_end_ends_the_answer_and_says_which_limit",),
        "one endless event, comment, head, blank or document",
    ),
    Break(
        "A head that dripped, or trailers without end, held mull as long as bytes came",
        (
            f"{_BODIES}a_head_that_drips_is_not_waited_for",
            f"{_BODIES}trailers_without_end_take_nothing_from_an_answer",
        ),
        "one endless event, comment, head, blank or document",
    ),
    Break(
        "A compressed bomb, or blanks before the first event, took gigabytes or seconds",
        (
            f"{_BODIES}a_packed_bomb_is_unpacked_in_bounded_memory",
            f"{_DECODER}blanks_before_the_first_event_are_not_held",
        ),
        "compressed bombs, broken and foreign compression",
    ),
    Break(
        "Text was lost where broken compression came in the same packet",
        (f"{_BODIES}text_in_the_same_read_as_a_packing_error_is_kept",),
        "compressed bombs, broken and foreign compression",
    ),
    Break(
        "A length of 5,000 digits ended in a traceback",
        (f"{_BODIES}what_no_second_try_would_mend_is_tried_once",),
        "lengths and framing that lie",
    ),
    Break(
        "Text was lost, and asked for four times, where a broken chunk came in the same packet",
        (f"{_BODIES}text_in_the_same_read_as_a_wrong_chunk_is_kept_and_not_asked_for_again",),
        "a broken chunk in one packet with text: kept, and not asked for again",
    ),
    Break(
        "A piece of more than 64 MB was lost with all that followed, and another reason given",
        (f"{_DECODER}what_is_too_long_ends_the_answer_and_the_limit_is_told",),
    ),
    Break(
        "Counting the tokens of a very long text took gigabytes",
        ("tests/policy/test_tokens.py::test_a_long_text_is_counted_in_pieces_of_bounded_size",),
        "an answer of 50 MB, 100,000 pieces, 3,000 calls, and the question after it",
    ),
    Break(
        "A path of 20 MB came back as a result of 20 MB, in every round",
        ("tests/agent/tools/test_read.py::test_a_path_without_end_is_not_repeated",),
    ),
    Break(
        "An error nested 930 levels deep ended in a traceback",
        (f"{_BODIES}an_error_that_is_nested_deeply_is_an_error_like_others",),
        "JSON nested 900 to 100,000 deep, in errors and in answers, then going on",
    ),
    Break(
        "A session with deeply nested parts could not be opened any more",
        ("tests/neutral/test_nesting.py::test_a_stored_record_opens_on_any_stack",),
        "JSON nested 900 to 100,000 deep, in errors and in answers, then going on",
    ),
    Break(
        "A call with a name that no provider takes ended the session",
        (f"{_CALLS}names_of_tools_are_taken_by_every_provider",),
        "tool calls with impossible names and arguments; the next requests are legal",
    ),
    Break(
        "A call with arguments that are no JSON object ended the session",
        (
            f"{_CALLS}no_call_makes_a_request_that_is_refused",
            f"{_CALLS}a_call_that_the_token_limit_cut_is_not_sent",
        ),
        "a call cut at the token limit, then the next question",
    ),
    Break(
        "An error page of 40,000 titles took six seconds to read",
        (f"{_BODIES}a_page_of_beginnings_is_read_in_linear_time",),
        "hostile error texts: 40,000 titles, retry times, patterns",
    ),
    Break(
        "100,000 unreadable frames were 100,000 lines of warnings",
        (f"{_BODIES}many_unreadable_frames_are_a_few_lines",),
        "100,000 unreadable frames",
    ),
    Break(
        "`mull --plain` passed escapes of a model on to the terminal",
        (f"{_GATE}a_terminal_that_is_guarded_obeys_nothing",),
        "escapes in thoughts, texts, names and arguments of an answer, at a terminal",
    ),
    Break(
        "A command could draw a question about another command",
        (f"{_GATE}a_forged_question_is_seen_for_what_it_is",),
        "a question about a command that shows another command",
    ),
    Break(
        "`mull sessions show` passed escapes in kinds and names of blocks on to the terminal",
        (f"{_GATE}no_command_lets_anything_through",),
        "escapes in what is stored, imported, named or in the catalog, at a terminal",
    ),
    Break(
        "Errors of import, notes on folders and the catalog passed escapes on as well",
        (f"{_GATE}no_command_lets_anything_through",),
        "escapes in what is stored, imported, named or in the catalog, at a terminal",
    ),
    Break(
        "Exported Markdown kept `javascript:` links and remote images",
        ("tests/transcripts/test_markdown.py::test_no_reader_runs_or_fetches_anything",),
        "hostile links and pictures in exported Markdown, as a renderer reads it",
    ),
    Break(
        "50 MB of text in one piece froze the terminal, Esc included",
        ("tests/tui/test_talk.py::test_a_stop_is_heard_while_a_text_in_one_piece_is_drawn",),
    ),
    Break(
        "A file, or where its path led, could change between the question and the answer",
        (
            "tests/agent/tools/test_write.py::test_a_file_that_came_meanwhile_is_not_replaced",
            "tests/agent/tools/test_write.py::test_a_link_that_came_meanwhile_leads_nowhere",
        ),
        "content or place of a file that change between the question and the answer",
    ),
    Break(
        "Changes far apart, and commands of many lines, were not shown before the answer",
        (
            "tests/agent/tools/test_compare.py"
            "::test_changes_far_apart_are_shown_each_with_its_true_count",
            "tests/tui/test_terminal_tools.py"
            "::test_all_of_a_long_command_can_be_seen_before_the_answer",
        ),
        "long differences: every changed line is shown, and the counts are true",
    ),
    Break(
        "A rule for `git diff *` allowed an option that overwrites files",
        (f"{_HARMLESS}a_star_stands_for_no_option_that_writes_or_executes",),
        "options that write or execute, behind a rule with a star",
    ),
    Break(
        "A rule for every file covered AGENTS.md, shell start files and mull's own rules",
        (f"{_HARMLESS}what_steers_programs_has_to_be_named",),
        "files that steer later runs, under rules for every file",
    ),
    Break(
        "A line that came through a pipe was taken for an approval",
        ("tests/tui/test_plain.py::test_a_pipe_approves_nothing",),
        "approval by what comes through a pipe",
    ),
    Break(
        "Variables that the config names as secrets reached commands",
        (
            "tests/agent/test_toolbox.py"
            "::test_variables_that_the_config_fills_in_do_not_reach_commands",
        ),
        "keys in the environment of commands",
    ),
    Break(
        "Closing the terminal left commands running",
        (
            f"{_GATE}whatever_ends_mull_ends_its_commands",
            f"{_GATE}closing_the_window_ends_commands",
        ),
        "a mull that is ended while a command runs",
    ),
    Break(
        "A pattern in .gitignore held `list` for more than 40 seconds",
        (
            "tests/agent/tools/test_list.py::test_a_pattern_costs_little_however_it_is_written",
            "tests/agent/tools/test_list.py"
            "::test_a_list_that_takes_too_long_says_what_it_did_not_look_at",
        ),
    ),
    Break(
        "A result of an MCP server that could not be read was waited for until the timeout",
        (
            "tests/agent/test_mcp_errors.py"
            "::test_an_answer_that_cannot_be_read_fails_its_call_at_once",
        ),
        "frames that are huge, broken, deep, of wrong types, ids or none",
    ),
    Break(
        "An MCP server's own error was taken for a lost connection, and the server restarted",
        ("tests/agent/test_mcp_errors.py::test_an_error_of_any_code_is_told_and_the_server_stays",),
        "an application's error with the code of a lost connection",
    ),
    Break(
        "An MCP tool that called itself read-only after an approval ran unasked",
        (
            "tests/agent/test_mcp_memory.py"
            "::test_a_hint_that_comes_after_an_approval_does_not_count",
        ),
        "a tool that calls itself read-only after it was listed",
    ),
    Break(
        "A compressed bomb of an MCP server took gigabytes",
        ("tests/agent/test_mcp_address.py::test_a_compressed_answer_is_opened_within_the_limit",),
    ),
    Break(
        "A command that went behind a link with `cd`, or hid a word in digits, read a file outside",
        (
            "tests/agent/tools/test_looking.py::test_what_leads_out_of_the_folder_is_asked_about",
            "tests/agent/tools/test_looking.py"
            "::test_words_that_bash_may_see_where_others_see_none_are_looked_up",
        ),
        "run for real behind a rule with a star: nothing changes, is read or reached",
    ),
    Break(
        "After a command had changed `.gitignore`, `/undo` deleted files that were ignored before",
        ("tests/agent/test_checkpoints.py::test_what_a_command_only_makes_visible_stays",),
    ),
    Break(
        "On a full disk no session could be deleted",
        (f"{_STORE}_disk.py::test_a_full_disk_can_be_made_room_on",),
    ),
    Break(
        "On a read-only disk the terminal did not start",
        (f"{_STORE}_disk.py::test_one_can_talk_on_a_read_only_disk",),
    ),
    Break(
        "Damaged cells of the database ended in a traceback; a pipe in its place hung",
        (
            f"{_STORE}_repair.py::test_random_damage_ends_in_a_sentence_or_in_nothing",
            f"{_STORE}_files.py::test_a_pipe_in_the_place_of_the_store_is_not_waited_for",
        ),
        "a damaged database: told in a line, and one can go on",
    ),
    Break(
        "After the clock was set back, `--continue` went on with another session",
        (f"{_STORE}s.py::test_a_clock_that_is_set_back_does_not_change_which_session_is_the_last",),
    ),
    Break(
        "Secrets in addresses were stored and exported",
        ("tests/settings/test_addresses.py::test_an_address_is_kept_without_its_secrets",),
        "secrets in addresses",
    ),
    Break(
        "Others could look into the data folder if a log was the first to make it",
        ("tests/agent/test_mcp_log.py::test_lines_come_whole_and_without_secrets",),
        "files and folders where the umask hides nothing",
    ),
    Break(
        "An updated catalog could send keys to another host",
        ("tests/catalog/test_update.py::test_no_shipped_provider_can_be_moved",),
        "a catalog that sends keys elsewhere, for every provider",
    ),
    Break(
        "AGENTS.md of a fresh clone, or of another user, reached the system prompt unseen",
        (
            "tests/agent/test_trust.py"
            "::test_where_nobody_can_be_asked_unseen_instructions_are_not_used",
            "tests/agent/test_trust.py::test_what_another_user_plants_above_is_not_read",
        ),
        "instructions, commands, config and servers that a clone or another user plants",
    ),
    Break(
        "An answer without end filled memory and disk",
        (f"{_DECODER}what_is_too_long_ends_the_answer_and_the_limit_is_told",),
    ),
)


def section() -> str:
    """The part of the page that tells what broke once."""
    rows = (
        f"| {one.what} | {'<br>'.join(f'`{test}`' for test in one.tests)} | {one.attack} |"
        for one in BREAKS
    )
    return "\n".join(
        [
            _BEGIN,
            "",
            "## What broke once",
            "",
            f"{len(BREAKS)} attacks broke an early version. Each has a test in the default run, and"
            f" most have an attack above that tries the same in other forms.",
            "",
            "| What broke | Test | Attack |",
            "|---|---|---|",
            *rows,
            "",
            _END,
        ]
    )


def written_into(page: str) -> str:
    """The page with this section in the place of the old one, or at its end."""
    old = _SECTION.search(page)
    if old is None:
        return f"{page.rstrip()}\n\n{section()}\n"
    return page[: old.start()] + section() + page[old.end() :]


def main() -> int:
    """Write the section anew."""
    PAGE.write_text(written_into(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
