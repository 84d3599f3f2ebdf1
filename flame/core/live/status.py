"""Describe how a live recording is doing: what the app says besides the flame graph."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from flame.core.columns import I8, Column
from flame.core.lazy_dataclass import dataclass


class SourceState(Enum):
    """The state of one recorded process."""

    RUNNING = "running"
    ENDED = "ended"
    """The dump is complete."""
    KILLED = "ended without saying so"
    """The process is gone (killed, os._exit, exec) and its dump was never completed."""
    FULL = "no more room: recording has stopped"
    STOPPED = "recording was stopped"
    UNREADABLE = "its dump cannot be read any more"


@dataclass(frozen=True)
class SourceStatus:
    """The status of one dump: its ``label`` on level rank, ``dropped`` records, ``bytes`` of it.

    ``halted``: a signal or a debugger has stopped its process, for now.
    """

    pid: int
    label: str
    state: SourceState
    dropped: int
    bytes: int
    halted: bool = False


@dataclass(frozen=True, eq=False)
class Rates:
    """Rates of the last minute in steps of ``step`` ns, oldest first, the last one just over.

    While anything is recorded a minute that ended a second ago: of that not all is known yet.

    ``busy`` f8[n]: part of the time in which any GPU of the recording ran something, averaged over
    the GPUs of the processes that recorded then (0 to 1). ``launches`` i8[n]: CUDA API calls that
    began. ``number``: which step of the clock comes after the last one.
    """

    step: int
    busy: Column
    launches: I8
    number: int = 0


@dataclass(frozen=True, eq=False)
class LiveStatus:
    """The status of a whole recording.

    ``lag`` ns: how old the newest thing shown can be, 0 when all has been read. ``behind`` bytes
    of the dumps that are not read yet. ``elapsed`` ns since the first process began to record.
    """

    sources: tuple[SourceStatus, ...]
    rates: Rates
    lag: int
    behind: int
    elapsed: int
    notes: tuple[str, ...] = field(default=())

    @property
    def dropped(self) -> int:
        """The number of records that could not be written, of all processes."""
        return sum(source.dropped for source in self.sources)

    @property
    def running(self) -> int:
        """The number of processes that still record."""
        return sum(source.state is SourceState.RUNNING for source in self.sources)

    @property
    def halted(self) -> bool:
        """Whether all processes that still record are halted."""
        running = [source for source in self.sources if source.state is SourceState.RUNNING]
        return bool(running) and all(source.halted for source in running)
