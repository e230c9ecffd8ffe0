"""Turns: asking, running tools, asking again."""
