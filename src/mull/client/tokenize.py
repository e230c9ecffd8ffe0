"""Tokens as the server of a model counts them, for servers on this machine that offer it.

Asked while somebody waits, so only on loopback, with little patience and one text at a time; who
counts keeps the result. A server that fails once is not asked again: a stand-in counts then.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

import msgspec

__all__ = ["SHAPES", "server_tokens"]

PATIENCE = 0.5
_LARGEST = 64 << 20
"""Bytes of an answer; the longest list of tokens that fits a window is shorter."""
SHORT, LONG = 256, 1 << 16
"""Bytes under which a text is not worth asking, and characters of a long one that are asked for."""
KEPT = 4096
"""Counts that are kept: the same text is counted for every request that holds it."""

SHAPES: Mapping[str, Callable[[str, str], dict[str, Any]]] = {
    "llama": lambda model, text: {"content": text, "add_special": False},
    "vllm": lambda model, text: {"model": model, "prompt": text, "add_special_tokens": False},
}
"""What the servers are asked, by kind."""


def server_tokens(
    root: str,
    headers: Mapping[str, str],
    ask: Callable[[str], dict[str, Any]],
    stand_in: Callable[[str], int],
) -> Callable[[str], int]:
    """What counts the tokens of a text: the server, or the stand-in at the rate of what the server
    has counted so far."""
    return _Tokens(root, headers, ask, stand_in).count


class _Tokens:
    def __init__(
        self,
        root: str,
        headers: Mapping[str, str],
        ask: Callable[[str], dict[str, Any]],
        stand_in: Callable[[str], int],
    ) -> None:
        place = urlsplit(root)
        self._host, self._port = place.hostname or "127.0.0.1", place.port
        self._path = f"{place.path}/tokenize"
        self._headers = {**headers, "content-type": "application/json"}
        self._ask = ask
        self._stand_in = stand_in
        self._failed = False
        self._counted = self._guessed = 1
        self._known: dict[bytes, int] = {}

    def count(self, text: str) -> int:
        piece = text[:LONG].encode("utf-8", "replace")
        if self._failed or len(piece) < SHORT:
            return self._estimate(text)
        name = blake2b(piece, digest_size=16).digest()
        tokens = self._known.get(name)
        if tokens is None:
            try:
                tokens = self._tokens(piece.decode())
            except (OSError, http.client.HTTPException, ValueError, TypeError, KeyError):
                self._failed = True  # whatever it is, it is no such server
                return self._estimate(text)
            self._keep(name, tokens, self._stand_in(text[:LONG]))
        return tokens if len(text) <= LONG else round(tokens * len(text) / LONG)

    def _keep(self, name: bytes, tokens: int, guessed: int) -> None:
        self._counted += tokens
        self._guessed += guessed
        if len(self._known) >= KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[name] = tokens

    def _estimate(self, text: str) -> int:
        return round(self._stand_in(text) * self._counted / self._guessed)

    def _tokens(self, text: str) -> int:
        """Raises whatever goes wrong with the request or its answer."""
        body = msgspec.json.encode(self._ask(text))
        connection = http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)
        try:
            connection.request("POST", self._path, body, self._headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
            said = msgspec.json.decode(answer.read(_LARGEST))
        finally:
            connection.close()
        return int(said["count"] if "count" in said else len(said["tokens"]))
