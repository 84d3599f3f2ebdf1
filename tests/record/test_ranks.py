"""``flame record`` sums up ranks beside their dumps, and is never in the way of anything."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from flame.core.errors import CancelledError
from flame.core.loading.many import load_all
from flame.core.rank_summary.summary_file import unpack_summary
from flame.record.plan import Plan
from flame.record.rank_summaries import dumps_of_ranks, write_summaries
from tests.cli.conftest import PYTHON, Flame, Record, said, without_limit
from tests.cli.programs import FLUSHED, KERNELS
from tests.inject.conftest import small_file_system
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.deep

RANKS = "for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 $0 program.py & done; wait; exit 5"


def summed_up(folder: Path) -> list[int]:
    """The ranks of the summaries in a recording."""
    paths = folder.glob("*.flamesum")
    return sorted(unpack_summary(path.read_bytes(), "x").info[0].rank for path in paths)


@pytest.fixture
def record(record: Record) -> Record:
    """``flame record`` with all the time that a machine with other work takes to sum up ranks."""
    return partial(record, program=without_limit("flame.record.rank_summaries", "LONGEST"))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flame.record.rank_summaries.LONGEST", 1e9)


@pytest.fixture
def program(folder: Path) -> Path:
    path = folder / "program.py"
    path.write_text(KERNELS)
    return path


def test_each_rank_has_a_summary_that_stands_for_its_dump(
    record: Record, flame: Flame, program: Path
) -> None:
    done = record("-o", "run", "bash", "-c", RANKS, sys.executable)
    assert done.returncode == 5
    assert said(done)[-1] == "4 ranks summed up; see all with: flame ranks run -o run.flamesum"
    assert summed_up(Path("run")) == [0, 1, 2, 3]
    assert {oct(path.stat().st_mode)[-3:] for path in Path("run").iterdir()} == {"600"}
    result = flame("ranks", "run", "-o", "kept.flamesum")
    assert "4 dumps are read from what flame record has summed up beside" in result.err
    assert len(load_all([Path("run")]).sources) == 4
    assert len(load_all(sorted(Path("run").iterdir())).sources) == 4
    for path in Path("run").glob("*.flamesum"):
        path.unlink()
    assert flame("ranks", "run", "-o", "read.flamesum").code == 0
    assert Path("read.flamesum").read_bytes() == Path("kept.flamesum").read_bytes()


@pytest.mark.parametrize("known", [{}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}])
def test_a_program_that_is_alone_is_no_rank(known: dict[str, str], record: Record) -> None:
    done = record("-o", "run", *PYTHON, KERNELS, env={**os.environ, **known})
    assert said(done)[-1] == "see it with: flame view run"
    assert not summed_up(Path("run"))


def test_a_rank_that_was_killed_is_summed_up_as_far_as_it_came(
    record: Record, program: Path
) -> None:
    program.write_text(KERNELS + FLUSHED + "if os.environ['RANK'] == '2': os.kill(os.getpid(), 9)")
    done = record("-q", "-o", "run", "bash", "-c", RANKS + " 2>&-", sys.executable)
    assert done.returncode == 5
    assert summed_up(Path("run")) == [0, 1, 2, 3]


def test_what_goes_on_is_not_summed_up(record: Record, program: Path) -> None:
    program.write_text(
        KERNELS + FLUSHED + "open('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    wait = "$0 program.py >&- 2>&- & while [ ! -s pid ]; do sleep 0.05; done"
    environment = {**os.environ, "RANK": "3"}
    try:
        done = record("-o", "run", "bash", "-c", wait, sys.executable, env=environment)
        assert "still record" in done.stderr and "summed up" not in done.stderr
        assert not summed_up(Path("run"))
    finally:
        os.kill(int(Path("pid").read_text()), signal.SIGKILL)


def test_a_full_disk_is_one_line(record: Record, folder: Path, program: Path) -> None:
    full = RANKS.replace("exit 5", "cat /dev/zero > run/full 2>&-; exit 5")
    with small_file_system(folder / "disk", 24) as disk:
        (disk / "program.py").write_text(KERNELS)
        os.chdir(disk)
        done = record("-q", "-o", "run", "bash", "-c", full + " 2>&-", sys.executable)
        os.chdir(folder)
        left = [path.name for path in (disk / "run").iterdir() if path.suffix != ".fdump"]
    assert done.returncode == 5
    (line,) = [line for line in said(done) if "summed" in line]
    assert line.endswith("fdump and 3 more: not summed up: No space left on device")
    assert left == ["full"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_asks_flame_to_end_keeps_the_exit_code(
    number: signal.Signals, recorder: None, monkeypatch: pytest.MonkeyPatch, flame: Flame
) -> None:
    def asked(plan: Plan, folder: Path) -> None:
        os.kill(os.getpid(), number)
        time.sleep(PATIENCE)  # which a signal cuts short

    monkeypatch.setattr("flame.record.finish.sum_up_ranks", asked)
    before = signal.getsignal(number)
    result = flame("record", "-q", "-o", "run", *PYTHON, KERNELS + "sys.exit(7)")
    assert result.code == 7
    assert result.err == "flame: interrupted: the rest of the summary is left out\n"
    assert signal.getsignal(number) == before


def test_a_failure_keeps_the_exit_code(
    recorder: None, monkeypatch: pytest.MonkeyPatch, flame: Flame
) -> None:
    def fail(plan: Plan, folder: Path) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr("flame.record.finish.sum_up_ranks", fail)
    result = flame("record", "-q", "-o", "run", *PYTHON, KERNELS + "sys.exit(7)")
    assert (result.code, result.err) == (7, "flame: ranks are not summed up: out of luck\n")


# dumps that nobody has recorded


@pytest.fixture
def dumps(record: Record, program: Path) -> list[Path]:
    done = record("-q", "-o", "run", "bash", "-c", RANKS, sys.executable)
    assert done.returncode == 5
    for path in Path("run").glob("*.flamesum"):
        path.unlink()
    return sorted(Path("run").glob("*.fdump"))


def test_a_damaged_dump_costs_itself(dumps: list[Path]) -> None:
    dumps[1].write_bytes(b"FLAMEDMP" + bytes(100))
    dumps[2].write_text("no dump")
    (dumps[0].parent / "1-1.fdump").write_text("")
    assert len(dumps_of_ranks(Path("run"), ())) == 2
    found = write_summaries(dumps)
    assert found.written == len(summed_up(Path("run"))) == 2
    assert len(list(found.lines)) == 2 and not any("\n" in line for line in found.lines)


def test_nothing_is_overwritten(dumps: list[Path]) -> None:
    mine = dumps[0].with_suffix(".flamesum")
    mine.write_text("mine")
    found = write_summaries(dumps)
    assert list(found.lines) == [f"{dumps[0].name}: not summed up: File exists"]
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("after", [0, 1])
def test_who_stops_it_leaves_nothing_half_written(after: int, dumps: Sequence[Path]) -> None:
    calls = []

    def progress(stage: str, done: int, expected: int) -> None:
        calls.append(done)
        if len(calls) > after:
            raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        write_summaries(dumps, progress)
    left = {path.suffix for path in Path("run").iterdir()}
    assert left <= {".fdump", ".flamesum"}
    summed_up(Path("run"))


def test_what_takes_too_long_is_told(dumps: list[Path]) -> None:
    found = write_summaries(dumps, longest=0)
    assert found.written == 0
    (line,) = found.lines
    assert line.endswith(" and 3 more: not summed up: not done within 0 s")


def test_what_needs_too_much_memory_is_told(
    dumps: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flame.record.rank_summaries._LEAST_MEMORY", 1 << 20)
    monkeypatch.setattr("flame.record.rank_summaries.bytes_to_use", lambda: 1 << 20)
    found = write_summaries(dumps[:1])
    assert found.written == 0 and len(list(found.lines)) == 1
    assert not summed_up(Path("run"))
