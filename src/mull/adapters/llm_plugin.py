"""What llm loads as a plugin. If it cannot be used, llm's other models go on working."""

from __future__ import annotations

from mull.logs import log_warning

try:
    from mull.adapters.llm import register_models as register_models
except ImportError as error:
    log_warning(str(error))
