"""Anthropic Messages: typed content blocks in both directions, signed thinking among them."""
