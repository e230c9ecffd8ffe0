"""Turns: send a request, run tools, send the next."""
