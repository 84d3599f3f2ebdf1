"""Declare what can be followed: a feed of snapshots, and what finds dumps as they appear."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from flame.core.live.status import LiveStatus
from flame.core.live.window import LiveWindow
from flame.core.model.profile import Profile
from flame.exporters.dumps import DumpSource


class LiveFeed(Protocol):
    """Read a recording, and give snapshots of what has been read."""

    def update(self, budget: float) -> bool:
        """Read what is new, for about ``budget`` seconds; whether anything is."""

    def snapshot(self, window: LiveWindow) -> LiveSnapshot:
        """Return what is in ``window``; nothing changes it any more."""

    def mark(self) -> None:
        """Begin the window "since the mark"."""

    def status(self) -> LiveStatus:
        """Tell how the recording is doing."""

    def close(self) -> None:
        """Let go of all files."""


@runtime_checkable
class DumpFeed(Protocol):
    """Read dumps, also of processes that begin later."""

    @property
    def sources(self) -> Sequence[DumpSource]:
        """The dumps, to be saved."""

    def add(self, path: Path, fd: int | None = None) -> None:
        """Read one more; InputError if it is none (yet)."""


class LiveSnapshot(Protocol):
    """Hold a window of a recording at one moment."""

    @property
    def profile(self) -> Profile:
        """What it holds."""


class NewDumps(Protocol):
    """Find dumps while they appear."""

    def new(self) -> list[tuple[Path, int | None]]:
        """List those that have appeared since, and their descriptors where a path would not do."""

    @property
    def over(self) -> bool:
        """Whether no more will appear."""
