"""Google's generateContent as in Gemini 3: signatures on parts, thinking in summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from mull.dialects.writer import About
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.messages import assistant
from mull.testing.ledger import Issued, Ledger
from mull.testing.providers.provider import (
    Asked,
    Provider,
    Written,
    ending_of,
    render,
    tokens,
    usage_of,
)
from mull.testing.rules.gemini import (
    canonical,
    check_gemini,
    check_gemini_calls,
    check_gemini_model,
    check_gemini_places,
    check_gemini_replay,
    signature_of,
)
from mull.testing.script import Act, Call, Say, Think, thoughts_in
from mull.testing.verdict import Verdict, doubted, refused, suspected

__all__ = ["Gemini"]

_PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<method>generate|streamGenerate)Content$")


class Gemini(Provider):
    """Always thinks and signs; shows its thinking if the request says `includeThoughts`."""

    name: ClassVar[str] = "gemini"
    models: ClassVar[tuple[str, ...]] = ("gemini-3-pro-preview", "gemini-3-flash-preview")
    asks_by: ClassVar[str] = "`includeThoughts`"
    variables: ClassVar[Mapping[str, str]] = {
        "GOOGLE_GEMINI_BASE_URL": "{url}",
        "GEMINI_API_KEY": "strict",
    }

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        found = _PATH.search(path)
        if found is None:
            return None
        return Asked(canonical(body), found["model"], found["method"] != "generate")

    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        yield from refused(check_gemini(asked.body))
        yield from refused(check_gemini_replay(asked.body, ledger))
        yield from suspected(check_gemini_places(asked.body, ledger))
        yield from suspected(check_gemini_model(asked.body, asked.model, ledger))
        yield from doubted(check_gemini_calls(asked.body, ledger))

    def thinks(self, asked: Asked) -> bool:
        return True

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        config = (asked.body.get("generationConfig") or {}).get("thinkingConfig") or {}
        shown = bool(config.get("includeThoughts"))
        blocks = [block for act in acts for block in _blocks(act, ledger, shown=shown)]
        thoughts = thoughts_in(acts)
        signature = ledger.seal(asked.model, "".join(thought.text for thought in thoughts))
        _sign(blocks, signature)
        usage = usage_of(asked.body["contents"], blocks, thoughts)
        message = assistant(*blocks, stop_reason=ending_of(acts), usage=usage)
        about = About(id=ledger.name(""), model=asked.model)
        whole, events = render("gemini", message, about)
        return Written(self.issue(asked, whole), whole, events)

    def issue(self, asked: Asked, document: Mapping[str, Any]) -> Issued:
        parts = document["candidates"][0]["content"]["parts"]
        carriers = {mark: at for at, part in enumerate(parts) if (mark := signature_of(part))}
        calls = {
            part["functionCall"]["id"]: at
            for at, part in enumerate(parts)
            if "id" in part.get("functionCall", {})
        }
        return Issued(asked.model, parts, {**calls, **carriers}, [*carriers])

    def error(self, verdict: Verdict) -> tuple[int, Mapping[str, Any]]:
        said = verdict.reason
        return 400, {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        parts = (part for content in body["contents"] for part in content["parts"])
        return [signature for part in parts if (signature := signature_of(part))]

    def count(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not path.endswith(":countTokens"):
            return None
        plain = canonical(body)
        return {"totalTokens": tokens(plain.get("contents") or plain["generateContentRequest"])}

    def listed(self) -> Mapping[str, Any]:
        return {"models": [self.model(name) for name in self.models]}

    def model(self, name: str) -> Mapping[str, Any]:
        methods = ["generateContent", "countTokens"]
        about = {"displayName": name, "supportedGenerationMethods": methods}
        return {"name": f"models/{name}", "version": "001", **about}


def _blocks(act: Act, ledger: Ledger, *, shown: bool) -> list[Block]:
    match act:
        case Think(text, hidden):
            return [ThinkingBlock(text, kind="summary")] if shown and not hidden else []
        case Say(text):
            return [TextBlock(text)]
        case Call(name, arguments):
            return [ToolCallBlock(ledger.name(""), name, arguments)]


def _sign(blocks: list[Block], signature: str) -> None:
    """Put the signature on the first call, otherwise on the last text, otherwise on a part of its
    own.
    """
    calls = [at for at, block in enumerate(blocks) if isinstance(block, ToolCallBlock)]
    words = [at for at, block in enumerate(blocks) if isinstance(block, TextBlock)]
    if not calls and not words:
        blocks.append(TextBlock(""))
        words = [len(blocks) - 1]
    at = calls[0] if calls else words[-1]
    blocks[at] = replace(blocks[at], signature=signature)
