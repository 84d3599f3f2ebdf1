"""``python -m flame``."""

import sys

from flame.cli import main

sys.exit(main())
