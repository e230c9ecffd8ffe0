"""Attack mull and print what held: `python -m tools.attack [WORD …] [--write]`."""

import sys

from tools.attack.table import main

if __name__ == "__main__":
    sys.exit(main())
