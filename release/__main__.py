"""Run ``python -m release``."""

import sys

from release.command import main

sys.exit(main())
