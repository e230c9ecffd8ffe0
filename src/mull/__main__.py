"""`python -m mull`."""

import sys

from mull.cli.main import main

sys.exit(main())
