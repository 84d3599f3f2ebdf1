"""``python -m flame``."""

import sys

from flame.cli.main import main

sys.exit(main())
