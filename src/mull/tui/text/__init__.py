"""Styled lines of text, and Markdown rendered to them."""
