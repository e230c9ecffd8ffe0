"""The terminal itself: what it is, what stands on it, its keys."""
