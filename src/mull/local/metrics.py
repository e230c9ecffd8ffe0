"""Reads what llama.cpp tells of its work (Prometheus text)."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Metrics", "read_metrics"]


class Metrics(Struct, frozen=True):
    """Tokens read and written since the start, and whether there is work now."""

    read: int = 0
    written: int = 0
    busy: bool = False

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.read + self.written


def read_metrics(text: str) -> Metrics:
    """The metrics in the text; what is missing counts as nothing."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.removeprefix("llamacpp:").partition(" ")
        if line.startswith("llamacpp:"):
            values[name] = _number(value)
    waiting = values.get("requests_processing", 0) + values.get("requests_deferred", 0)
    return Metrics(
        int(values.get("prompt_tokens_total", 0)),
        int(values.get("tokens_predicted_total", 0)),
        waiting > 0,
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
