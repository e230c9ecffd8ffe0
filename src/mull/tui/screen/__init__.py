"""The terminal itself: its capabilities, its content, its keys."""
