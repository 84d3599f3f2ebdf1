#!/usr/bin/env python3
"""Looks whether the library does on a real GPU what it does on the double of the driver.

    python benchmarks/gpu_check.py [--quick | --full | --run 1|2|3] [--out DIR]

It prints PASS, FAIL, HANG or SKIP for each check, with what was found, and keeps it as JSON. What
is checked, and how, is in `gpu/`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu.command import main

if __name__ == "__main__":
    sys.exit(main())
