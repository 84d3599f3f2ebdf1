"""One thing that was looked at, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "limited", "missing", "absent"]
"""``limited``: works, but not all of it; ``missing``: recording a GPU needs it; ``absent``: not
there, and only wanted for something more."""


@dataclass(frozen=True)
class Check:
    """``key`` is for scripts, ``title`` and ``text`` are for people, ``fix`` says what to do."""

    key: str
    title: str
    state: State
    text: str
    fix: str = ""
