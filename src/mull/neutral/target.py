"""Where a request goes: provider, dialect, model facts and endpoint quirks, combined once.

Facts are models.dev's own fields (snake_case, unknown ones ignored) plus a few that it lacks.
Compat is how an endpoint behaves on the wire; its JSON and TOML keys are camelCase, and an unknown
key there is an error, because a user wrote it.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mull.neutral.blocks import ThinkingKind, Value
from mull.neutral.messages import Dialect, Origin
from mull.neutral.parameters import ParameterName
from mull.neutral.thinking import LADDER, Level, TemplateWords, WriterName, as_level

__all__ = [
    "Compat",
    "Interleaved",
    "Limit",
    "ModelFacts",
    "ReasoningOption",
    "Script",
    "Target",
    "TurnForm",
    "split_level",
]

Script: TypeAlias = Literal[
    "letters",
    "accented",
    "greek",
    "cyrillic",
    "semitic",
    "indic",
    "symbols",
    "kana",
    "han",
    "hangul",
]
"""What a character belongs to: ASCII letters, other Latin letters, Hebrew and Arabic (`semitic`),
the scripts from Devanagari to Thai and beyond (`indic`), signs and emoji (`symbols`), …
"""


class _Facts(Struct, frozen=True, omit_defaults=True):
    pass


class ReasoningOption(_Facts, frozen=True):
    """One way to control a model's thinking: `toggle`, `effort` (values) or `budget_tokens` (min,
    max).

    `learnt` numbers come from a rejection, not from the catalog.
    """

    type: str
    values: tuple[str, ...] = ()
    min: int | None = None
    max: int | None = None
    learnt: bool = False


class Interleaved(_Facts, frozen=True):
    """The model requires its reasoning back, in this field."""

    field: str


class Limit(_Facts, frozen=True):
    """Window and output limits in tokens; 0 or None is unknown."""

    context: int | None = None
    output: int | None = None
    input: int | None = None


class ModelFacts(_Facts, frozen=True):
    """What is known about a model. Every field has a value for "unknown".

    `own_reasoning`: the user's own entry says that it reasons, so that it is told to think.
    `tokenizer_scale` is the number of its own tokens per token of a substitute tokenizer,
    `tokenizer_scripts` what each character adds to the substitute's count before that, by script;
    negative where the substitute needs more tokens than the model. The frames are what the endpoint
    adds around every request, and around one with tools. Without `offer_tools` it is offered tools
    only on request; `taught_tools` are the built-in tools that a model can use, if it was taught
    only a few. `forced_tools` and `temperature` say whether it accepts a forced tool, or a
    temperature and a top_p: `off` only while it does not think, and `required` only that some tool
    must be called, not which. With `declines_thoughts` it declines a request that contains thinking
    as text.
    """

    name: str | None = None
    family: str | None = None
    reasoning: bool = False
    reasoning_options: tuple[ReasoningOption, ...] = ()
    own_reasoning: bool = False
    interleaved: bool | Interleaved | None = None
    tool_call: bool | None = None
    temperature: bool | Literal["off"] | None = None
    structured_output: bool | None = None
    limit: Limit = Limit()
    cost: dict[str, Any] | None = None
    release_date: str | None = None
    open_weights: bool | None = None
    input: tuple[str, ...] = ()
    status: str | None = None
    forced_tools: bool | Literal["off", "required"] | None = None
    declines_thoughts: bool = False
    offer_tools: bool = True
    thinks_by_default: bool | None = None
    can_be_off: bool | None = None
    default_effort: str | None = None
    off_type: str = "disabled"
    tokenizer: str | None = None
    tokenizer_exact: bool = False
    tokenizer_scale: float = 1.0
    tokenizer_scripts: dict[Script, float] = {}
    frame_tokens: int = 0
    tool_frame_tokens: int = 0
    taught_tools: tuple[str, ...] | None = None
    presets: dict[str, Any] = {}
    source: str | None = None

    @property
    def efforts(self) -> tuple[Level, ...]:
        """The levels the model accepts as words, lowest first."""
        found = {
            level
            for option in self.reasoning_options
            if option.type == "effort"
            for value in option.values
            if (level := as_level(value))
        }
        return tuple(sorted(found, key=LADDER.index))

    @property
    def budget(self) -> ReasoningOption | None:
        """The token budget option, if it has one."""
        return next((o for o in self.reasoning_options if o.type == "budget_tokens"), None)

    @property
    def has_toggle(self) -> bool:
        """Whether thinking can be turned on and off."""
        return any(o.type == "toggle" for o in self.reasoning_options)

    @property
    def can_stop_thinking(self) -> bool:
        """Whether thinking can be off, explicitly or as a consequence of how it is controlled."""
        if self.can_be_off is not None:
            return self.can_be_off
        budget = self.budget
        return self.has_toggle or "none" in self.efforts or (budget is not None and budget.min == 0)

    @property
    def always_thinks(self) -> bool:
        """Whether it is known to think in every answer, and cannot be controlled."""
        return self.reasoning and not self.reasoning_options and self.can_be_off is False

    @property
    def returns_in(self) -> str | None:
        """The field its reasoning must be sent back in, if the catalog names one."""
        return self.interleaved.field if isinstance(self.interleaved, Interleaved) else None


class TurnForm(Value, frozen=True):
    """The form of a model's turns, for the grammar of them that a server is given: what the prompt
    ends with, what opens a thought there, and the tokens that close it.
    """

    prompt: str
    open: str
    close: tuple[int, ...]


class Compat(Value, frozen=True):
    """How an endpoint behaves. The defaults are for an unknown one: read everything, send back only
    what it sent, invent nothing.

    `omits` are parameters that are not sent to it: it rejects them, or may not support them.
    `holds` are values that are fixed there whatever is requested. With `either_sampling` it accepts
    a temperature or a top_p, not both. `system_inside` is the role of a system message within the
    conversation; if that is the user's, those at the beginning are joined. `reads_thinking_of` are
    patterns of other models whose thinking the model reads, at the same endpoint and account.
    `thinking_kind` is what the model shows of its thinking, if the API itself does not say it. One
    that `ignores_off` thinks although it is told not to. `refused_keys` are names of keys and beta
    features that clients add for other servers of the dialect, and this one rejects.
    """

    reasoning_in: tuple[str, ...] = (
        "reasoning_content",
        "reasoning",
        "reasoning_text",
        "thinking",
        "reasoning_details",
        "thinking_blocks",
    )
    reasoning_out: str = "same"
    requires_reasoning: Literal["no", "tool_calls", "all"] = "no"
    missing_reasoning: str | None = None
    signed_only: bool = False
    thinking_writer: WriterName = "usual"
    thinking_is_guess: bool = False
    ignores_off: bool = False
    budget_field: str | None = None
    level_budgets: dict[Level, int] = {}
    zero_budget_ends: bool = False
    template: TemplateWords = TemplateWords()
    template_key: str | None = None
    keep_thinking: dict[str, Any] | None = None
    tags: tuple[tuple[str, str], ...] = (
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<reasoning>", "</reasoning>"),
        ("<thought>", "</thought>"),
        ("<mm:think>", "</mm:think>"),
        ("<seed:think>", "</seed:think>"),
        ("<longcat_think>", "</longcat_think>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
    )
    starts_in_reasoning: bool = False
    tags_anywhere: bool = False
    cumulative: bool = False
    max_tokens_field: str = "max_tokens"
    omits: tuple[ParameterName, ...] = ("verbosity", "user", "metadata", "cache_key")
    holds: dict[ParameterName, Any] = {}
    either_sampling: bool = False
    most_stops: int | None = None
    hosted_tools: bool = False
    namespaces: bool = False
    strict_tools: bool = True
    system_role: str = "system"
    system_inside: Literal["system", "user"] = "user"
    stream_usage: bool = True
    thinking_needs_stream: bool = False
    empty_content: str | None = None
    tools_need_responses: bool = False
    path: str | None = None
    tool_id_length: int | None = None
    result_media: Literal["user", "tool"] = "user"
    assistant_after_results: bool = False
    binds_thinking: bool = False
    reads_thinking_of: tuple[str, ...] = ()
    thinking_kind: ThinkingKind = "raw"
    encrypted_reasoning: bool = True
    auth: (
        Literal[
            "bearer",
            "x-api-key",
            "x-goog-api-key",
            "api-key",
            "azure",
            "cf-aig-authorization",
            "aws",
            "google",
        ]
        | None
    ) = None
    end_thinking: Literal["llama-control"] | None = None
    count_thinking: Literal["llama-timings"] | None = None
    grammar: TurnForm | None = None
    batches: Literal["openai", "anthropic"] | None = None
    batch_price: float = 1.0
    extra_body: dict[str, Any] = {}
    refused_keys: tuple[str, ...] = ()

    @property
    def template_words(self) -> TemplateWords:
        """The chat template's keywords, including that of the row."""
        words, key = self.template, self.template_key
        if key is None:
            return words
        return replace(words, on={**words.on, key: True}, off={**words.off, key: False})


class Target(Value, frozen=True):
    """One model at one endpoint, with everything known about both.

    `wants_thinking` is set if the name itself asked for it (a `-thinking` suffix). `refused` are
    the fingerprints of carriers that it rejected. `account` is that of its origin.
    """

    provider: str
    provider_name: str
    model: str
    dialect: Dialect
    facts: ModelFacts
    compat: Compat
    endpoint: str | None = None
    key_env: tuple[str, ...] = ()
    known: bool = True
    wants_thinking: bool = False
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    account: str | None = None

    @property
    def name(self) -> str:
        """`provider/model`."""
        return f"{self.provider}/{self.model}"

    @property
    def origin(self) -> Origin:
        """The origin of messages that this target writes."""
        return Origin(self.provider, self.dialect, self.model, self.endpoint, self.account)


def split_level(name: str) -> tuple[str, Level | int | None]:
    """Split `model/level` or `model/50000` at the last slash, if what follows is one of them."""
    head, slash, tail = name.rpartition("/")
    if not slash or not head:
        return name, None
    if tail.isascii() and tail.isdigit():
        return head, int(tail)
    level = as_level(tail)
    return (name, None) if level is None else (head, level)
