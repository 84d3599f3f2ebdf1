"""A program is watched while it runs: bit by bit all is seen that its dump holds at the end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.live.decode.growing import GrowingDump
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import DumpBytes
from flame.core.readers.fdump.context import SharedTables
from flame.core.readers.fdump.layout import RUNNING
from tests.core.live.decode.viewed_dumps import Seen
from tests.core.readers.fdump.test_oracle import rows_of
from tests.support.waiting import PATIENCE

WORKLOAD = Path(__file__).with_name("truth_workload.py")
ACTIONS = 1500
TIMEOUT_S = PATIENCE


def appearing(folder: Path) -> GrowingDump:
    """The dump of the process that has just been started."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        for path in folder.glob("*.fdump"):
            try:
                return GrowingDump(DumpBytes(path), str(path), 0, SharedTables(), LoadOptions())
            except InputError:
                continue
        time.sleep(0.005)
    raise AssertionError("no dump")


def read_to_its_end(dump: GrowingDump, program: subprocess.Popen[bytes]) -> Iterator[None]:
    """Looks as often as it can; the last one is after the end."""
    until = time.monotonic() + TIMEOUT_S
    while dump.header.state == RUNNING or dump.unread_bytes():
        assert time.monotonic() < until
        assert program.poll() in (None, 0)
        yield


@pytest.mark.parametrize("told", ["ok", "shuffle"])
def test_what_is_seen_bit_by_bit_is_what_there_is(
    tmp_path: Path, injected_env: Callable[..., dict[str, str]], told: str
) -> None:
    folder = tmp_path / "dump"
    env = injected_env(folder, FAKE_CUPTI=told, FAKE_DEVICES="2", FLAME_FLUSH_MS="20")
    command = [sys.executable, str(WORKLOAD), "7", str(ACTIONS), str(tmp_path / "log")]
    with subprocess.Popen(command, env=env) as program:
        dump = appearing(folder)
        seen = Seen(dump.shared, dump.header.start_monotonic)
        for _ in read_to_its_end(dump, program):
            seen.add(dump.read(most=20_000))
    assert program.returncode == 0
    assert sum(not batch.empty for batch in seen.batches) > 10
    assert seen.work() == sorted(rows_of(load(dump.path)))
    at_once = GrowingDump(DumpBytes(Path(dump.path)), dump.path, 0, SharedTables(), LoadOptions())
    whole = Seen(at_once.shared, seen.start)
    whole.add(at_once.read(most=1 << 40))
    assert (seen.calls(), seen.ended()) == (whole.calls(), whole.ended())
    assert (seen.open(), dump.warnings()) == ([], ())
    dump.close()
    at_once.close()
