"""Attacks on mull as a user runs it, on loopback and in homes of their own; `make attack`."""
