"""The providers that a strict server can imitate, by name."""

from __future__ import annotations

from collections.abc import Mapping

from mull.testing.providers.anthropic import Anthropic, BoundAnthropic
from mull.testing.providers.chat import DeepSeek, Kimi, OpenRouter
from mull.testing.providers.gemini import Gemini
from mull.testing.providers.provider import Provider
from mull.testing.providers.responses import OpenAI

__all__ = ["PROVIDERS"]

_ALL: tuple[type[Provider], ...] = (
    Anthropic,
    BoundAnthropic,
    DeepSeek,
    Gemini,
    Kimi,
    OpenAI,
    OpenRouter,
)
PROVIDERS: Mapping[str, type[Provider]] = {kind.name: kind for kind in _ALL}
