"""A conversation as lines."""
