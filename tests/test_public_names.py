"""The public API is exactly this list, and importing it costs nothing."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import mull

NAMES = [
    "AmbiguousModel",
    "AnyTool",
    "ApprovalAnswer",
    "ApprovalChoice",
    "ApprovalRequest",
    "ApproveFunction",
    "Approver",
    "Assembler",
    "AsyncBatch",
    "AsyncStream",
    "AuthenticationError",
    "Batch",
    "BatchItem",
    "BatchProgress",
    "BatchResult",
    "Block",
    "BlockEnded",
    "BudgetError",
    "CatalogError",
    "Changes",
    "Compat",
    "CompleteOptions",
    "Compressed",
    "Condensed",
    "ConfigError",
    "ConnectionOptions",
    "ContentFilterError",
    "Conversation",
    "ConversationOptions",
    "Corrected",
    "Counter",
    "Decoder",
    "Dialect",
    "Engine",
    "Entry",
    "Event",
    "ExchangeOptions",
    "Failed",
    "Finished",
    "Healed",
    "History",
    "Hit",
    "Hold",
    "HostedTool",
    "HttpClient",
    "HttpRequest",
    "HttpResponse",
    "Hurried",
    "Instruction",
    "Interleaved",
    "JobStatus",
    "JournalBatch",
    "Key",
    "Level",
    "Limit",
    "LocalError",
    "Log",
    "McpConfig",
    "McpGiven",
    "McpServers",
    "MediaBlock",
    "MemorySessions",
    "Message",
    "Meter",
    "MisfitError",
    "ModelFacts",
    "MullError",
    "NamedTool",
    "NetworkError",
    "NoModelError",
    "Note",
    "Nudged",
    "OpaqueBlock",
    "OpaqueReceived",
    "Origin",
    "OverloadedError",
    "Parameters",
    "Parts",
    "Prepared",
    "PreparedCall",
    "Preview",
    "ProfileError",
    "Progressed",
    "Questioner",
    "QuotaError",
    "RateLimit",
    "RateLimitError",
    "RateWindow",
    "ReachOptions",
    "ReasoningOption",
    "Reclassified",
    "Record",
    "RefusedError",
    "RemoteError",
    "Request",
    "RequestOptions",
    "RequestParameters",
    "Result",
    "RetryRules",
    "Retrying",
    "Role",
    "RunnableTool",
    "Said",
    "SearchKind",
    "ServeApp",
    "ServerError",
    "ServerStatus",
    "Session",
    "SessionBusy",
    "SessionError",
    "SessionInfo",
    "SessionStore",
    "SettingError",
    "Settings",
    "Setup",
    "SilenceError",
    "Snapshot",
    "SqliteSessions",
    "Started",
    "StateChanged",
    "Status",
    "Steered",
    "Stream",
    "Summary",
    "Target",
    "TextBlock",
    "TextDelta",
    "ThinkingBlock",
    "ThinkingCarrier",
    "ThinkingDelta",
    "ThinkingPlan",
    "TodoItem",
    "TooLongError",
    "Tool",
    "ToolCallBlock",
    "ToolCallDelta",
    "ToolContext",
    "ToolDefinition",
    "ToolFailure",
    "ToolOutput",
    "ToolRan",
    "ToolResultBlock",
    "ToolStarted",
    "Toolbox",
    "Transport",
    "TrustRequest",
    "Truster",
    "TurnParameters",
    "Undone",
    "UnknownLevel",
    "UnknownModel",
    "UnusableError",
    "UnwritableError",
    "Usage",
    "UsageReported",
    "UserQuestion",
    "Warned",
    "Wire",
    "WireRequest",
    "__version__",
    "ask",
    "ask_async",
    "assemble",
    "assistant",
    "batch",
    "batch_async",
    "complete",
    "complete_async",
    "complete_stream",
    "complete_stream_async",
    "counter_for",
    "decode_response",
    "decoder",
    "encode_request",
    "estimate_thinking_tokens",
    "extract_thinking_blocks",
    "file",
    "filter_thinking_for_context",
    "load_setup",
    "message_from_json",
    "message_to_json",
    "meter_of",
    "open_session",
    "open_session_async",
    "open_sessions",
    "prepare",
    "preset_values",
    "resolve",
    "serve_app",
    "stream",
    "stream_async",
    "thinking_to_reasoning_field",
    "this_folder",
    "tool",
    "user",
]


def test_the_public_names_are_frozen():
    assert sorted(mull.__all__) == sorted(NAMES) == dir(mull)


def test_every_public_name_is_there():
    for name in mull.__all__:
        assert getattr(mull, name) is not None


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(mull.__file__).with_suffix(".pyi").read_text())
    seen = {(node.module, alias.name) for node in tree.body for alias in node.names}
    renamed = [
        alias.name for node in tree.body for alias in node.names if alias.name != alias.asname
    ]
    there = {(home, name) for home, names in mull._PUBLIC.items() for name in names.split()}
    assert seen == there | {("mull._version", "__version__")}
    assert not renamed


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'mull' has no attribute 'nonsense'"):
        _ = mull.nonsense


def modules_after(code):
    code += "; import sys; print('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


HEAVY = {"msgspec", "splintr", "asyncio", "socket", "ssl", "http", "urllib.request", "argparse"}
HEAVY |= {"typing", "json", "tomllib", "curses", "readline", "sqlite3", "logging"}


def test_import_mull_loads_nothing_heavy():
    loaded = modules_after("import mull")
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("mull")} == {"mull", "mull._version"}


def test_version_loads_nothing_heavy():
    loaded = modules_after("from mull.cli.main import main; main(['--version'])")
    assert not loaded & HEAVY


def test_values_load_neither_catalog_nor_tokenizer():
    loaded = modules_after("from mull import Message, prepare, Log; import mull.tokenizers")
    assert "splintr" not in loaded
    assert not any(name.startswith("mull.catalog") for name in loaded)


def test_what_takes_keywords_takes_them_by_name_and_type():
    taking = {
        "CompleteOptions": (mull.complete, mull.complete_async, mull.complete_stream),
        "ConversationOptions": (mull.Conversation.__init__, mull.ask, mull.stream_async),
        "TurnParameters": (mull.Conversation.ask, mull.Conversation.stream_async),
    }
    for options, functions in taking.items():
        for function in functions:
            (last,) = list(inspect.signature(function).parameters.values())[-1:]
            assert last.annotation == f"Unpack[{options}]", function


@pytest.mark.parametrize(
    "call",
    [
        lambda: mull.Conversation("m/x", max_token=1),
        lambda: mull.ask("q", "m/x", modl="y"),
        lambda: mull.complete("q", "m/x", max_rounds=2),
        lambda: mull.Conversation("openai/gpt-5", key="k").ask("q", tools=[]),
    ],
)
def test_a_keyword_that_does_not_exist_is_refused_as_python_does(call):
    with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument"):
        call()
