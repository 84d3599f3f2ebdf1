"""Command lines with secrets and what is shown of them: C++ and Python have to agree about it."""

from __future__ import annotations

import json
from pathlib import Path

_ALL = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
CASES: list[tuple[list[str], list[str]]] = [(one["words"], one["masked"]) for one in _ALL]
