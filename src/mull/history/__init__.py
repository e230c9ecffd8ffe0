"""The conversation as it happened."""
