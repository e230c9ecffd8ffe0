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
    """What is known about a model. Every field has a value for "unknown"; most are fields of
    models.dev.
    """

    name: str | None = None
    """The model's display name, such as `Claude Opus 4.5`; None if the catalog has none."""
    family: str | None = None
    """The model's family as models.dev names it, such as `claude-opus`; only shown."""
    reasoning: bool = False
    """Whether the model can think."""
    reasoning_options: tuple[ReasoningOption, ...] = ()
    """The ways to control its thinking: words of effort, a token budget, a switch. Empty if there
    are none, or none is known.
    """
    own_reasoning: bool = False
    """Whether the user's own entry says that it reasons; then it is told to think unless the user
    says otherwise.
    """
    interleaved: bool | Interleaved | None = None
    """Whether it needs its reasoning back, and in which field; None is unknown."""
    tool_call: bool | None = None
    """Whether it can call tools; None is unknown."""
    temperature: bool | Literal["off"] | None = None
    """Whether it accepts a temperature and a top_p; `off` only while it does not think."""
    structured_output: bool | None = None
    """Whether its endpoint enforces the schema of an answer; None is unknown."""
    limit: Limit = Limit()
    """Its context window and the limits of input and output, in tokens."""
    cost: dict[str, Any] | None = None
    """Prices in dollars per million tokens, by the keys of models.dev: `input`, `output`,
    `cache_read`, ….
    """
    release_date: str | None = None
    """When it was released, as `2026-01-31` or only `2026-01`."""
    open_weights: bool | None = None
    """Whether its weights are public; None is unknown. Only shown."""
    input: tuple[str, ...] = ()
    """The kinds of input it accepts, such as `text`, `image` and `pdf`; empty is unknown."""
    status: str | None = None
    """Its stage in the words of models.dev, such as `beta` or `deprecated`; None for most."""
    forced_tools: bool | Literal["off", "required"] | None = None
    """Whether it accepts a forced tool: `off` only while it does not think, `required` only that
    some tool must be called, not which.
    """
    declines_thoughts: bool = False
    """Whether it declines a request that contains thinking as text."""
    offer_tools: bool = True
    """Whether it is offered tools unasked; false offers them only on request."""
    thinks_by_default: bool | None = None
    """Whether it thinks if a request says nothing about it; None is unknown."""
    can_be_off: bool | None = None
    """Whether its thinking can be turned off; None lets `reasoning_options` decide."""
    default_effort: str | None = None
    """The word of effort that the provider uses if a request names none."""
    off_type: str = "disabled"
    """The value of `thinking.type` that turns thinking off; one other than `disabled`, such as
    `between_tools`, leaves some of it on.
    """
    tokenizer: str | None = None
    """The vocabulary that counts its tokens, such as `qwen3`; None counts with a default one."""
    tokenizer_exact: bool = False
    """Whether that vocabulary is its own, rather than a substitute for it."""
    tokenizer_scale: float = 1.0
    """The number of its own tokens per token of a substitute tokenizer."""
    tokenizer_scripts: dict[Script, float] = {}
    """What each character adds to the substitute's count before scaling, by script; negative where
    the substitute needs more tokens than the model.
    """
    frame_tokens: int = 0
    """Tokens that the endpoint adds around every request."""
    tool_frame_tokens: int = 0
    """Tokens that the endpoint adds beyond `frame_tokens` if a request has tools."""
    taught_tools: tuple[str, ...] | None = None
    """The built-in tools that the model can use, if it was taught only a few; None is all."""
    presets: dict[str, Any] = {}
    """Settings that the catalog gives requests to this model, by key, such as
    `reasoning.includeInContext`.
    """
    source: str | None = None
    """Where the facts come from, in words for the user, such as `your config.toml`; None is the
    catalog's first source.
    """

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
    """

    reasoning_in: tuple[str, ...] = (
        "reasoning_content",
        "reasoning",
        "reasoning_text",
        "thinking",
        "reasoning_details",
        "thinking_blocks",
    )
    """The fields to read reasoning from, in order."""
    reasoning_out: str = "same"
    """The field to send reasoning back in: a name, `same` (the one it came in), or `never`."""
    requires_reasoning: Literal["no", "tool_calls", "all"] = "no"
    """Which earlier answers the endpoint rejects without their reasoning: none, those with tool
    calls, or all.
    """
    missing_reasoning: str | None = None
    """The text sent in place of required reasoning that is missing, such as a space; None sends
    nothing.
    """
    signed_only: bool = False
    """Whether thinking goes back only with its signature. Where all of it is required, this does
    not apply.
    """
    thinking_writer: WriterName = "usual"
    """The request format that controls thinking; `usual` is the dialect's own, sent only if the
    user asks.
    """
    thinking_is_guess: bool = False
    """Whether it is unknown if the server honours that format; users are told so."""
    ignores_off: bool = False
    """Whether it thinks although it is told not to: stored thinking goes back as if thinking were
    on.
    """
    budget_field: str | None = None
    """The endpoint's name for a thinking budget, such as `thinking_token_budget`; None if it has
    none.
    """
    level_budgets: dict[Level, int] = {}
    """Tokens for each level, if the server itself ends thinking by a budget; a level without a
    number has no limit.
    """
    zero_budget_ends: bool = False
    """Whether a budget of 0 ends all thinking, so that it is sent along with off."""
    template: TemplateWords = TemplateWords()
    """The keywords of the model's chat template for thinking: on, off, effort and budget."""
    template_key: str | None = None
    """One more keyword that switches thinking in the chat template; None for none."""
    keep_thinking: dict[str, Any] | None = None
    """The part of the body that asks the server to keep earlier thinking; None if it has no such
    request.
    """
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
    """The pairs of tags that mark reasoning inside the text."""
    starts_in_reasoning: bool = False
    """Whether the text starts inside reasoning, because the prompt ends with the opening tag."""
    tags_anywhere: bool = False
    """Whether an opening tag counts anywhere outside code, rather than only at the start of an
    answer.
    """
    cumulative: bool = False
    """Whether each chunk of a stream repeats what came before."""
    max_tokens_field: str = "max_tokens"
    """The endpoint's name for the answer's token limit, such as `max_completion_tokens`."""
    omits: tuple[ParameterName, ...] = ("verbosity", "user", "metadata", "cache_key")
    """Parameters that are not sent: the endpoint rejects them, or is not known to accept them."""
    holds: dict[ParameterName, Any] = {}
    """Parameters that the endpoint has fixed, with their values; leaving these values out needs no
    note.
    """
    either_sampling: bool = False
    """Whether it accepts a temperature or a top_p, but not both."""
    most_stops: int | None = None
    """The most stop texts it accepts; None is no limit."""
    hosted_tools: bool = False
    """Whether it is the provider's own server, with tools that the provider runs, such as web
    search.
    """
    namespaces: bool = False
    """Whether it accepts tools grouped in namespaces."""
    strict_tools: bool = True
    """Whether it enforces the schema of a tool that asks for it with `strict`."""
    system_role: str = "system"
    """The role of the system prompt, `system` or `developer`."""
    system_inside: Literal["system", "user"] = "user"
    """The role of a system message within the conversation; if that is the user's, those at the
    beginning are joined.
    """
    stream_usage: bool = True
    """Whether it is asked for token counts in a stream (`stream_options`)."""
    thinking_needs_stream: bool = False
    """Whether it thinks only in streams, so that a request that may think is always streamed."""
    empty_content: str | None = None
    """The text sent in place of content that would be empty; None sends none."""
    tools_need_responses: bool = False
    """Whether it accepts tools together with thinking only in its Responses API."""
    path: str | None = None
    """The path below the base URL; None is that of the dialect."""
    tool_id_length: int | None = None
    """Call ids must have exactly this many letters and digits; None is any length."""
    result_media: Literal["user", "tool"] = "user"
    """Where media of a tool result go: into a user message after it, or into the result itself."""
    assistant_after_results: bool = False
    """Whether only an answer may follow tool results: a short one is put before a user message that
    does.
    """
    binds_thinking: bool = False
    """Whether thinking is valid only after exactly the conversation it was produced in."""
    reads_thinking_of: tuple[str, ...] = ()
    """Patterns of other models whose thinking the model reads, at the same endpoint and account."""
    thinking_kind: ThinkingKind = "raw"
    """Whether its thinking is the model's own text or a summary, if the API does not say it."""
    encrypted_reasoning: bool = True
    """Whether it may be asked for encrypted reasoning."""
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
    """The header that carries the API key, or the cloud that authenticates the request (`aws`,
    `google`); None is the dialect's header.
    """
    end_thinking: Literal["llama-control"] | None = None
    """How to stop thinking while it runs: `llama-control` is llama.cpp's own call, which each
    request enables. None if there is no way.
    """
    count_thinking: Literal["llama-timings"] | None = None
    """How thinking is counted if the endpoint does not report it: `llama-timings` reads llama.cpp's
    running count from every chunk.
    """
    grammar: TurnForm | None = None
    """The form of the model's turns, from which mull writes the grammar of every turn; None leaves
    that to the server.
    """
    batches: Literal["openai", "anthropic"] | None = None
    """Which batch API the provider has; None for none."""
    batch_price: float = 1.0
    """What an answer from a batch costs relative to others, such as 0.5."""
    extra_body: dict[str, Any] = {}
    """Fields that are merged into every body."""
    refused_keys: tuple[str, ...] = ()
    """Names of keys and beta features that clients add for other servers of the dialect and that
    this one rejects.
    """

    @property
    def template_words(self) -> TemplateWords:
        """The chat template's keywords, including that of the row."""
        words, key = self.template, self.template_key
        if key is None:
            return words
        return replace(words, on={**words.on, key: True}, off={**words.off, key: False})


class Target(Value, frozen=True):
    """One model at one endpoint, with everything known about both."""

    provider: str
    """The provider's id in the catalog or the config, such as `anthropic`."""
    provider_name: str
    """The provider's display name, such as `Anthropic`."""
    model: str
    """The model's id as the endpoint spells it."""
    dialect: Dialect
    """The wire format that the endpoint is spoken to in."""
    facts: ModelFacts
    """What is known about the model."""
    compat: Compat
    """How the endpoint behaves: all compat rows that match, combined."""
    endpoint: str | None = None
    """The base URL; None if none is known, so that it must be given."""
    key_env: tuple[str, ...] = ()
    """The environment variables that may hold the provider's API key, in the order in which they
    are tried.
    """
    known: bool = True
    """Whether the catalog has the model at this provider."""
    wants_thinking: bool = False
    """Whether the name itself asked for thinking, by a `-thinking` suffix."""
    refused: tuple[str, ...] = ()
    """The fingerprints of carriers that the endpoint has rejected; they are not sent again."""
    notes: tuple[str, ...] = ()
    """What the user should know about how the name was resolved."""
    account: str | None = None
    """The account of its origin, which tells the keys of one provider apart; None if only one is in
    use.
    """

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
