"""A LoRA adapter for SmolLM2-135M-Instruct, as a file beside this one; there is nothing to call."""
