"""Whether what is watched still records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flame.core.live import source
from flame.core.live.feed import RecordingFeed
from flame.core.live.status import SourceState
from flame.core.live.window import SECOND
from flame.core.options import LoadOptions
from tests.support.writers.fdumpfile import START, DumpFile

CALLS = 20


def an_ended_process() -> int:
    """The pid of a process that is no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_the_end_is_seen_soon_although_much_had_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_MOST", 1)
    path, now = tmp_path / "dump.fdump", START
    dump = DumpFile(an_ended_process(), rows=1)
    dump.ended = False
    for call in range(CALLS):
        dump.launch(call, call + 1, call + 1)
    feed = RecordingFeed(LoadOptions(), lambda: now)
    feed.add(dump.write(path))
    for second in range(CALLS):
        now = START + second * SECOND
        dump.end = second * SECOND
        dump.write(path)
        feed.update(0)
        assert feed.status().sources[0].state is SourceState.RUNNING
    now += 5 * SECOND
    feed.update(0)
    assert feed.status().sources[0].state is SourceState.KILLED
    feed.close()
