"""mull keeps a model's thinking.

The public names, grouped by the module that defines them. Each is loaded when it is first used,
so `import mull` costs next to nothing. `__init__.pyi` lists the same for type checkers; a test
compares the two.
"""

from mull._version import __version__

_PUBLIC = {
    "mull.agent.engine": "Engine",
    "mull.agent.functions": "Tool tool AnyTool",
    "mull.agent.approving": "ApproveFunction",
    "mull.agent.asking": "ask ask_async stream stream_async",
    "mull.agent.batch.front": "batch batch_async Batch AsyncBatch",
    "mull.agent.batch.items": "BatchItem",
    "mull.agent.batch.values": "BatchResult BatchProgress",
    "mull.agent.given": "Said",
    "mull.agent.complete": (
        "History complete complete_async complete_stream complete_stream_async"
    ),
    "mull.agent.library": "Conversation",
    "mull.agent.media": "file",
    "mull.agent.mcp.given": "McpGiven",
    "mull.agent.mcp.servers": "McpServers ServerStatus",
    "mull.agent.options": (
        "CompleteOptions ConversationOptions ReachOptions RequestParameters TurnParameters"
    ),
    "mull.agent.opening": "open_session open_session_async",
    "mull.agent.instructions": "Instruction",
    "mull.agent.reach": "Key",
    "mull.agent.results": "Result",
    "mull.agent.session": "Session",
    "mull.agent.setup": "Setup load_setup",
    "mull.agent.streams": "Stream AsyncStream",
    "mull.agent.toolbox": "Toolbox",
    "mull.agent.tools.approve": (
        "Approver ApprovalRequest ApprovalAnswer ApprovalChoice Questioner UserQuestion"
    ),
    "mull.agent.tools.background": "JobStatus",
    "mull.agent.tools.todo": "TodoItem",
    "mull.agent.tools.tool": "RunnableTool PreparedCall ToolContext Preview ToolFailure",
    "mull.agent.trust": "Truster TrustRequest",
    "mull.catalog.resolve": "resolve",
    "mull.client.connections": "ConnectionOptions",
    "mull.client.exchange": "ExchangeOptions",
    "mull.client.http": "HttpClient",
    "mull.client.retry": "RetryRules",
    "mull.client.transport": "HttpRequest HttpResponse Transport",
    "mull.dialects.decoder": "Decoder",
    "mull.dialects.registry": "encode_request decoder decode_response",
    "mull.gateway.mounted": "ServeApp serve_app",
    "mull.history.log": "Log Record Entry Summary Condensed Undone",
    "mull.neutral.assemble": "Assembler assemble",
    "mull.neutral.blocks": (
        "Block TextBlock ThinkingBlock ToolCallBlock ToolResultBlock MediaBlock OpaqueBlock Wire"
    ),
    "mull.neutral.errors": (
        "MullError LocalError SettingError ConfigError NoModelError ProfileError SessionError "
        "SessionBusy CatalogError UnknownModel UnknownLevel AmbiguousModel BudgetError RemoteError "
        "NetworkError SilenceError UnusableError RefusedError RateLimitError QuotaError "
        "AuthenticationError TooLongError ContentFilterError ServerError OverloadedError "
        "MisfitError UnwritableError"
    ),
    "mull.neutral.events": (
        "Event Started TextDelta ThinkingDelta ThinkingCarrier ToolCallDelta OpaqueReceived "
        "BlockEnded Reclassified UsageReported Warned ToolStarted ToolOutput ToolRan StateChanged "
        "Nudged Corrected Steered Hurried Progressed Compressed Retrying Healed Finished Failed"
    ),
    "mull.neutral.messages": (
        "Message user assistant Origin Role Status Dialect message_to_json message_from_json"
    ),
    "mull.neutral.parameters": "Parameters",
    "mull.neutral.rate_limit": "RateLimit RateWindow",
    "mull.neutral.request": (
        "Note Request RequestOptions ToolDefinition HostedTool NamedTool WireRequest"
    ),
    "mull.neutral.target": "Target ModelFacts Limit ReasoningOption Interleaved Compat",
    "mull.neutral.thinking": "Level ThinkingPlan",
    "mull.neutral.usage": "Usage",
    "mull.policy.meter": "meter_of Meter",
    "mull.policy.parts": "Parts",
    "mull.policy.prepare": "prepare Prepared",
    "mull.policy.reasoning": (
        "extract_thinking_blocks filter_thinking_for_context thinking_to_reasoning_field"
    ),
    "mull.policy.tokens": "Counter",
    "mull.settings.layers": "Settings Snapshot",
    "mull.settings.presets": "preset_values",
    "mull.store.mcp": "McpConfig",
    "mull.store.sessions.memory": "MemorySessions",
    "mull.store.sessions.sqlite": "open_sessions this_folder SqliteSessions",
    "mull.store.sessions.values": (
        "SessionStore SessionInfo Changes Hold Hit SearchKind JournalBatch"
    ),
    "mull.tokenizers": "counter_for estimate_thinking_tokens",
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
