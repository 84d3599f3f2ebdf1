"""Several traces, each read by a process of its own: real ones, stopped, killed and fed damage."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil
import pytest

from flame.core.errors import CancelledError, InputError, UsageError
from flame.core.loading import worker as load_process
from flame.core.loading.many import load, load_all
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.options import LoadOptions
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import leaves
from tests.support.waiting import runs
from tests.support.writers.fake_nsys import (
    OF_A_READER,
    descendants,
    report,
    slow_nsys,
    until,
)
from tests.support.writers.nsysfile import NsysFile

Progress = list[tuple[str, int, int]]


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    """Three traces of one kernel each, of 10, 20 and 30 ns."""
    return [_trace(tmp_path / f"rank{number}.sqlite", 10 * number + 10) for number in range(3)]


def _trace(path: Path, length: int) -> Path:
    with NsysFile(path) as file:
        file.nvtx("step, op_id = 7", 0, 100)
        file.api("cudaLaunchKernel_v7000", 10, 20, corr=1)
        file.kernel("gemm", 30, 30 + length, corr=1)
    return path


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two files whose reading does not end."""
    for name, value in slow_nsys(tmp_path).items():
        monkeypatch.setenv(name, value)
    return [report(tmp_path / f"{name}.nsys-rep") for name in "ab"]


# What comes back


def test_all_are_read_and_merged(traces: list[Path]) -> None:
    whole = load_all(traces)
    assert leaves(project_tree(whole, "rank,kernel")) == {
        ("rank0", "gemm"): 10,
        ("rank1", "gemm"): 20,
        ("rank2", "gemm"): 30,
    }
    assert [one.meta.path for one in whole.sources] == [str(path) for path in traces]


def test_one_is_read_as_it_is(traces: list[Path]) -> None:
    whole = load_all(traces[:1])
    assert whole.meta.path == str(traces[0])
    assert "rank" not in project_tree(whole).levels


def test_options_reach_the_readers(traces: list[Path]) -> None:
    raw = load_all(traces, LoadOptions(nvtx_names="raw"))
    assert ("rank0", "step, op_id = 7") in leaves(project_tree(raw, "rank,nvtx"))
    assert ("rank0", "step") in leaves(project_tree(load_all(traces), "rank,nvtx"))


@pytest.mark.deep
@needs_traces
def test_real_traces_come_back_whole() -> None:
    names = [
        "cuda_graph_small.sqlite",
        "a100_llm_nvtx.sqlite",
        "two_processes_colliding_ids.sqlite",
    ]
    paths = [TRACES / "nsys" / name for name in names if name in NSYS_TRACES]
    singles = [load(path) for path in paths]
    whole, expected = load_all(paths), merge_profiles(singles, [path.stem for path in paths])
    for metric in ("gpu", "launch", "queue", "idle", "host"):
        assert leaves(project_tree(whole, metric=metric)) == leaves(
            project_tree(expected, metric=metric)
        )
    assert whole.warnings == expected.warnings
    assert whole.ranges is not None
    assert expected.ranges is not None
    assert whole.ranges.parent.tolist() == expected.ranges.parent.tolist()
    assert whole.launches is not None
    assert expected.launches is not None
    assert whole.launches.configs == expected.launches.configs
    assert whole.launches.config.tolist() == expected.launches.config.tolist()


def test_progress_is_one_and_told_by_the_caller(traces: list[Path]) -> None:
    told: Progress = []
    threads = set()

    def progress(stage: str, done: int, expected: int) -> None:
        told.append((stage, done, expected))
        threads.add(threading.current_thread())

    load_all(traces, None, progress)
    assert threads == {threading.current_thread()}
    stages = [stage for stage, _, _ in told]
    assert "reading 3 traces" in stages and stages[-2:] == ["merging", "done"]


def test_nothing_is_left_open(traces: list[Path]) -> None:
    load_all(traces)
    before = psutil.Process().num_fds()
    load_all(traces)
    assert psutil.Process().num_fds() == before
    assert descendants() == []


# What goes wrong


def test_a_damaged_file_is_named_and_nothing_is_shown(traces: list[Path]) -> None:
    traces[1].write_bytes(b"SQLite format 3\0 and no more")
    with pytest.raises(InputError, match=r"rank1\.sqlite: "):
        load_all(traces)
    assert descendants() == []


def test_the_others_do_not_outlive_one_that_fails(traces: list[Path], endless: list[Path]) -> None:
    traces[0].write_bytes(b"")
    with pytest.raises(InputError, match=r"rank0\.sqlite: the file is empty"):
        load_all([endless[0], traces[0]])
    assert descendants() == []


def test_a_process_that_is_killed_is_told_by_the_name_of_its_file(endless: list[Path]) -> None:
    orphans: list[psutil.Process] = []

    def kill_one() -> None:
        until(lambda: len(descendants()) == 2 * OF_A_READER)
        reader = psutil.Process().children()[0]
        orphans.extend(reader.children())
        reader.kill()

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(InputError, match=r"\.nsys-rep: .* ended: Killed: is there enough memory"):
        load_all(endless)
    killer.join()
    assert descendants() == []
    until(lambda: not any(map(runs, orphans)))


def test_a_program_that_does_not_start_says_why(
    traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_process, "_PROGRAM", "raise SystemExit('there is no numpy')")
    with pytest.raises(InputError, match=r"the process reading it failed: there is no numpy"):
        load_all(traces)


def test_no_program_at_all_is_an_input_error(
    traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/no/python")
    with pytest.raises(InputError, match=r"rank\d\.sqlite: no process can be started for it"):
        load_all(traces)


def test_a_fault_of_a_reader_is_no_input_error(
    traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "import flame.core.loading.worker as m; m.load_file = lambda *a: 1 / 0; "
    monkeypatch.setattr(load_process, "_PROGRAM", broken + load_process._PROGRAM)
    with pytest.raises(RuntimeError, match=r"rank\d\.sqlite: ZeroDivisionError") as caught:
        load_all(traces)
    assert "Traceback" in caught.value.__notes__[0]


# Stopping


def test_a_load_that_is_cancelled_leaves_nothing(endless: list[Path], tmp_path: Path) -> None:
    below: list[psutil.Process] = []

    def progress(stage: str, done: int, expected: int) -> None:
        below[:] = descendants()
        if len(below) == 2 * OF_A_READER:
            raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        load_all(endless, None, progress)
    assert descendants() == []
    until(lambda: not any(one.is_running() for one in below))
    assert list((tmp_path / "own" / "flame").iterdir()) == []


def test_those_that_wait_for_a_processor_are_not_even_begun(
    endless: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flame.core.loading.parallel.available_cores", lambda: 1)

    def progress(stage: str, done: int, expected: int) -> None:
        assert len(psutil.Process().children()) <= 1
        if descendants():
            raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        load_all(endless, None, progress)
    assert descendants() == []


# What is not even tried


def test_a_file_named_twice_is_refused(traces: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rank0\.sqlite: is named twice"):
        load_all([traces[0], traces[1], traces[0]])
    link = tmp_path / "link.sqlite"
    link.symlink_to(traces[1])
    with pytest.raises(UsageError, match=r"link\.sqlite: is the same file as .*rank1\.sqlite"):
        load_all([traces[0], traces[1], link])


@pytest.mark.parametrize("others", [0, 2])
def test_a_pattern_that_nothing_matches_is_explained(traces: list[Path], others: int) -> None:
    pattern = traces[0].with_name("none*.json")
    with pytest.raises(InputError, match=r"none\*\.json: no file here matches that pattern"):
        load_all([*traces[:others], pattern])


def test_all_are_there_before_any_is_read(traces: list[Path], endless: list[Path]) -> None:
    with pytest.raises(InputError, match="missing: no such file"):
        load_all([*endless, traces[0].with_name("missing")])
    assert descendants() == []


def test_a_name_that_is_a_pattern_and_a_file_is_a_file(tmp_path: Path) -> None:
    path = _trace(tmp_path / "run[0].sqlite", 5)
    assert load_all([path]).gpu_time == 5


# Many


def test_many_are_told_of_what_sums_them_up(
    traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flame.core.loading.many._MANY", 2)
    note = load_all(traces).warnings[0]
    assert note.startswith("3 traces: flame ranks FILES -o run.flamesum sums them up; ")
    assert note.endswith(" of memory")
    assert not any("flame ranks" in note for note in load_all(traces[:2]).warnings)


def test_what_takes_more_than_half_of_the_memory_is_told(
    traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    need = 3 * sum(path.stat().st_size for path in traces)
    monkeypatch.setattr("flame.core.loading.many.bytes_to_use", lambda: 2 * need)
    assert not any("flame ranks" in note for note in load_all(traces).warnings)
    monkeypatch.setattr("flame.core.loading.many.bytes_to_use", lambda: 2 * need - 1)
    assert "flame ranks" in load_all(traces).warnings[0]


def test_what_cannot_fit_together_is_refused_before_it_is_read(
    traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in traces:
        path.write_bytes(bytes(100_000))
    monkeypatch.setenv("FLAME_MEMORY", "500kB")
    with pytest.raises(InputError, match=r"3 traces together: needs about 900 kB .*flame ranks"):
        load_all(traces)
