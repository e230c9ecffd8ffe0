"""Conversations as the tokens that the server would see, through its own chat template."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from mull.local.template import CHAT_TEMPLATE
from training.families import Conversation
from training.gguf import read_fields

__all__ = ["Rendered", "load_tokenizer", "render", "render_prompt"]


class Rendered(NamedTuple):
    """Tokens, and for each whether the model itself is to say it."""

    tokens: list[int]
    learnt: list[bool]


def load_tokenizer(weights: Path) -> Tokenizer:
    """The tokenizer that lies in the weights' file; digits stand alone."""
    fields = read_fields(weights)
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3
    tokenizer.add_special_tokens(
        [
            AddedToken(token, normalized=False, special=True)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind == control
        ]
    )
    return tokenizer


@cache
def _template() -> Any:
    environment = Environment(autoescape=False)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return environment.from_string(CHAT_TEMPLATE)


def render_prompt(conversation: Conversation, messages: tuple[Mapping[str, Any], ...]) -> str:
    """What the model is shown before it speaks."""
    return _text(conversation, messages, add_generation_prompt=True)


def render(conversation: Conversation, tokenizer: Tokenizer) -> Rendered:
    """A conversation with every turn that is practised; prompt and turn are cut as the server
    cuts them, which reads the one and writes the other."""
    tokens: list[int] = []
    learnt: list[bool] = []
    done = ""
    for at, message in enumerate(conversation.messages):
        if not message.get("learn"):
            continue
        prompt = render_prompt(conversation, conversation.messages[:at])
        whole = _text(conversation, conversation.messages[: at + 1])
        assert prompt.startswith(done), "a later turn changed an earlier one"
        assert whole.startswith(prompt), "a turn begins otherwise than its prompt"
        turn = whole[len(prompt) :].removesuffix("\n")
        for piece, own in ((prompt[len(done) :], False), (turn, True)):
            added = tokenizer.encode(piece, add_special_tokens=False).ids
            tokens += added
            learnt += [own] * len(added)
        done = prompt + turn
    return Rendered(tokens, learnt)


def _text(
    conversation: Conversation,
    messages: tuple[Mapping[str, Any], ...],
    *,
    add_generation_prompt: bool = False,
) -> str:
    rendered: str = _template().render(
        messages=messages,
        tools=conversation.tools,
        add_generation_prompt=add_generation_prompt,
        **conversation.settings,
    )
    return rendered
