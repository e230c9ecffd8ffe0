"""`python -m mull`."""

import os
import sys

# Python looks for modules in the current folder first, where a model may write
sys.path[:] = [place for place in sys.path if place not in ("", os.getcwd())]

from mull.cli.process import entry  # noqa: E402

entry()
