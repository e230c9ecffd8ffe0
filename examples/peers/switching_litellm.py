"""The same with litellm."""

import json
import sys
from pathlib import Path
from typing import Any

import litellm

FILE = Path("trip.json")
THOUGHTS = ("reasoning_content", "thinking_blocks", "provider_specific_fields")


def sendable(entry: dict[str, Any], model: str) -> dict[str, Any]:
    """A message as this model may get it: only its own thinking."""
    if entry["model"] == model:
        return entry["message"]
    return {key: value for key, value in entry["message"].items() if key not in THOUGHTS}


question, model = sys.argv[1:]
log = json.loads(FILE.read_text()) if FILE.exists() else []
log.append({"model": None, "message": {"role": "user", "content": question}})
response = litellm.completion(
    model=model,
    messages=[sendable(entry, model) for entry in log],
    reasoning_effort="medium",
)
message = response.choices[0].message
log.append({"model": model, "message": message.model_dump(exclude_none=True)})
written = FILE.with_suffix(".new")
written.write_text(json.dumps(log))
written.replace(FILE)
print(message.content)
