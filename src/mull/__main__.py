"""`python -m mull`."""

from mull.cli.main import entry

entry()
