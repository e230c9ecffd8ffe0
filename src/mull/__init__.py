"""mull keeps a model's thinking.

The public names, grouped by the module that defines them. Each is loaded when it is first used,
so `import mull` costs next to nothing. `__init__.pyi` lists the same for type checkers; a test
compares the two.
"""

from mull._version import __version__

_PUBLIC = {
    "mull.agent.engine": "Engine",
    "mull.agent.library": "Conversation ConversationOptions Said ask ask_async stream stream_async",
    "mull.agent.mcp.servers": "McpServers ServerStatus",
    "mull.agent.opening": "open_session",
    "mull.agent.reach": "Key",
    "mull.agent.results": "Result",
    "mull.agent.session": "Session",
    "mull.agent.setup": "Setup load_setup",
    "mull.agent.streams": "AsyncStream Stream",
    "mull.agent.toolbox": "Toolbox",
    "mull.agent.tools.approve": "ApprovalAnswer ApprovalRequest Approver",
    "mull.agent.tools.tool": "Preview RunnableTool ToolContext ToolFailure",
    "mull.catalog.resolve": "resolve",
    "mull.client.exchange": "ExchangeOptions",
    "mull.client.retry": "RetryRules",
    "mull.dialects.decoder": "Decoder",
    "mull.dialects.registry": "decode_response decoder encode_request",
    "mull.history.log": "Condensed Entry Log Record Summary Undone",
    "mull.neutral.assemble": "Assembler assemble",
    "mull.neutral.blocks": (
        "Block MediaBlock OpaqueBlock TextBlock ThinkingBlock ToolCallBlock ToolResultBlock"
    ),
    "mull.neutral.errors": (
        "AmbiguousModel BudgetError CatalogError ConfigError LocalError MullError NetworkError "
        "ProfileError RefusedError RemoteError SessionBusy SessionError SettingError SilenceError "
        "UnknownLevel UnknownModel"
    ),
    "mull.neutral.events": (
        "BlockEnded Compressed Event Failed Finished Healed Hurried Nudged OpaqueReceived "
        "Progressed Reclassified Retrying Started StateChanged TextDelta ThinkingCarrier "
        "ThinkingDelta ToolCallDelta ToolOutput ToolRan ToolStarted UsageReported Warned"
    ),
    "mull.neutral.messages": (
        "Dialect Message Origin Role Status assistant message_from_json message_to_json user"
    ),
    "mull.neutral.request": "NamedTool Note Request RequestOptions Tool WireRequest",
    "mull.neutral.target": "Compat Interleaved Limit ModelFacts ReasoningOption Target",
    "mull.neutral.thinking": "Level ThinkingPlan",
    "mull.neutral.usage": "Usage",
    "mull.policy.meter": "Meter meter_of",
    "mull.policy.parts": "Parts",
    "mull.policy.prepare": "Prepared prepare",
    "mull.policy.reasoning": (
        "estimate_thinking_tokens extract_thinking_blocks filter_thinking_for_context "
        "thinking_to_reasoning_field"
    ),
    "mull.policy.tokens": "Counter",
    "mull.settings.layers": "Settings Snapshot",
    "mull.settings.presets": "preset_values",
    "mull.store.mcp": "McpConfig",
    "mull.store.sessions.memory": "MemorySessions",
    "mull.store.sessions.sqlite": "SqliteSessions open_sessions this_folder",
    "mull.store.sessions.values": "Hit Hold JournalBatch SearchKind SessionInfo SessionStore",
    "mull.tokenizers": "counter_for",
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'mull' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
