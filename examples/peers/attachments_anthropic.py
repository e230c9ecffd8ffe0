"""The same with the anthropic SDK."""

import base64
import mimetypes
import sys
from pathlib import Path
from typing import Any

from anthropic import Anthropic


def block(path: str) -> dict[str, Any]:
    media_type, _ = mimetypes.guess_type(path)
    if media_type is None:
        raise ValueError(f"unknown type of file: {path}")
    return {
        "type": "document" if media_type == "application/pdf" else "image",
        "source": {
            "type": "base64",
            "media_type": media_type,
            "data": base64.b64encode(Path(path).read_bytes()).decode(),
        },
    }


message = Anthropic().messages.create(
    model="claude-haiku-4-5",
    max_tokens=16000,
    thinking={"type": "enabled", "budget_tokens": 10000},
    messages=[
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Does the chart agree with the report?"},
                *map(block, sys.argv[1:]),
            ],
        }
    ],
)
print("".join(block.text for block in message.content if block.type == "text"))
