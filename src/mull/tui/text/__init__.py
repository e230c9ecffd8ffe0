"""Styled lines of text, and Markdown as such."""
