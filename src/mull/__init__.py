"""mull keeps a model's thinking.

The public names, grouped by the module that defines them. Each is loaded when it is first used,
so `import mull` costs next to nothing.
"""

from mull._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names as in _PUBLIC, for type checkers; a test compares the two
    from mull.agent.engine import Engine as Engine
    from mull.agent.library import Conversation as Conversation
    from mull.agent.library import ask as ask
    from mull.agent.library import ask_async as ask_async
    from mull.agent.library import stream as stream
    from mull.agent.library import stream_async as stream_async
    from mull.agent.opening import open_session as open_session
    from mull.agent.results import Result as Result
    from mull.agent.session import Session as Session
    from mull.agent.streams import AsyncStream as AsyncStream
    from mull.agent.streams import Stream as Stream
    from mull.catalog.resolve import resolve as resolve
    from mull.history.log import Condensed as Condensed
    from mull.history.log import Entry as Entry
    from mull.history.log import Log as Log
    from mull.history.log import Summary as Summary
    from mull.history.log import Undone as Undone
    from mull.neutral.assemble import Assembler as Assembler
    from mull.neutral.assemble import assemble as assemble
    from mull.neutral.blocks import Block as Block
    from mull.neutral.blocks import MediaBlock as MediaBlock
    from mull.neutral.blocks import OpaqueBlock as OpaqueBlock
    from mull.neutral.blocks import TextBlock as TextBlock
    from mull.neutral.blocks import ThinkingBlock as ThinkingBlock
    from mull.neutral.blocks import ToolCallBlock as ToolCallBlock
    from mull.neutral.blocks import ToolResultBlock as ToolResultBlock
    from mull.neutral.errors import AmbiguousModel as AmbiguousModel
    from mull.neutral.errors import BudgetError as BudgetError
    from mull.neutral.errors import CatalogError as CatalogError
    from mull.neutral.errors import ConfigError as ConfigError
    from mull.neutral.errors import LocalError as LocalError
    from mull.neutral.errors import MullError as MullError
    from mull.neutral.errors import NetworkError as NetworkError
    from mull.neutral.errors import ProfileError as ProfileError
    from mull.neutral.errors import RefusedError as RefusedError
    from mull.neutral.errors import RemoteError as RemoteError
    from mull.neutral.errors import SessionBusy as SessionBusy
    from mull.neutral.errors import SessionError as SessionError
    from mull.neutral.errors import SettingError as SettingError
    from mull.neutral.errors import SilenceError as SilenceError
    from mull.neutral.errors import UnknownModel as UnknownModel
    from mull.neutral.messages import Message as Message
    from mull.neutral.messages import Origin as Origin
    from mull.neutral.messages import assistant as assistant
    from mull.neutral.messages import message_from_json as message_from_json
    from mull.neutral.messages import message_to_json as message_to_json
    from mull.neutral.messages import user as user
    from mull.neutral.request import Note as Note
    from mull.neutral.request import Request as Request
    from mull.neutral.request import RequestOptions as RequestOptions
    from mull.neutral.request import Tool as Tool
    from mull.neutral.target import Compat as Compat
    from mull.neutral.target import ModelFacts as ModelFacts
    from mull.neutral.target import Target as Target
    from mull.neutral.usage import Usage as Usage
    from mull.policy.prepare import Prepared as Prepared
    from mull.policy.prepare import prepare as prepare
    from mull.policy.reasoning import estimate_thinking_tokens as estimate_thinking_tokens
    from mull.policy.reasoning import extract_thinking_blocks as extract_thinking_blocks
    from mull.policy.reasoning import filter_thinking_for_context as filter_thinking_for_context
    from mull.policy.reasoning import thinking_to_reasoning_field as thinking_to_reasoning_field
    from mull.settings.layers import Settings as Settings
    from mull.settings.layers import Snapshot as Snapshot
    from mull.settings.presets import preset_values as preset_values
    from mull.tokenizers import counter_for as counter_for

_PUBLIC = {
    "mull.agent.engine": ("Engine",),
    "mull.agent.library": (
        "Conversation",
        "ask",
        "ask_async",
        "stream",
        "stream_async",
    ),
    "mull.agent.opening": ("open_session",),
    "mull.agent.results": ("Result",),
    "mull.agent.session": ("Session",),
    "mull.agent.streams": (
        "AsyncStream",
        "Stream",
    ),
    "mull.catalog.resolve": ("resolve",),
    "mull.history.log": (
        "Condensed",
        "Entry",
        "Log",
        "Summary",
        "Undone",
    ),
    "mull.neutral.assemble": (
        "Assembler",
        "assemble",
    ),
    "mull.neutral.blocks": (
        "Block",
        "MediaBlock",
        "OpaqueBlock",
        "TextBlock",
        "ThinkingBlock",
        "ToolCallBlock",
        "ToolResultBlock",
    ),
    "mull.neutral.errors": (
        "AmbiguousModel",
        "BudgetError",
        "CatalogError",
        "ConfigError",
        "LocalError",
        "MullError",
        "NetworkError",
        "ProfileError",
        "RefusedError",
        "RemoteError",
        "SessionBusy",
        "SessionError",
        "SettingError",
        "SilenceError",
        "UnknownModel",
    ),
    "mull.neutral.messages": (
        "Message",
        "Origin",
        "assistant",
        "message_from_json",
        "message_to_json",
        "user",
    ),
    "mull.neutral.request": (
        "Note",
        "Request",
        "RequestOptions",
        "Tool",
    ),
    "mull.neutral.target": (
        "Compat",
        "ModelFacts",
        "Target",
    ),
    "mull.neutral.usage": ("Usage",),
    "mull.policy.prepare": (
        "Prepared",
        "prepare",
    ),
    "mull.policy.reasoning": (
        "estimate_thinking_tokens",
        "extract_thinking_blocks",
        "filter_thinking_for_context",
        "thinking_to_reasoning_field",
    ),
    "mull.settings.layers": (
        "Settings",
        "Snapshot",
    ),
    "mull.settings.presets": ("preset_values",),
    "mull.tokenizers": ("counter_for",),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

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
