"""A trace opened from the cache is the one that was loaded; whatever else is there is not used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flame.core.efficiency.sums import count_operators, whole_of
from flame.core.errors import CancelledError, InputError
from flame.core.files.cache import Cache
from flame.core.loading.file import load_file
from flame.core.loading.many import load_all
from flame.core.model.frames import Frame, FrameTable, Kind
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.operators.work import WorkOptions
from flame.core.options import LoadOptions, Progress, silent
from flame.core.projection.filters import Time
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.reopening import column_file, profile_cache
from flame.core.reopening.kept_rows import KeptRows
from flame.core.reopening.profile_cache import ProfileCache
from tests.conftest import TRACES, is_small
from tests.core.reopening.conftest import any_size, find, keep, kept_file, written
from tests.support.paths import SAMPLES
from tests.support.project_tree import project_tree
from tests.support.same_profiles import differences
from tests.support.tiers import deep_except
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.fdumpscripts import Program
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.ncufile import Row, sass_page
from tests.support.writers.nsysfile import NsysFile

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
OTHER = 64_001
"""A user of no name."""

FORWARD = LoadOptions(forward=True)
EVERYTHING = LoadOptions("raw", True, True)
OPTIONS = deep_except([FORWARD], [FORWARD, LoadOptions(), EVERYTHING])
REAL = sorted((*TRACES.glob("nsys/*.sqlite"), *TRACES.glob("kineto/*.json.gz")))


def not_loaded(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    raise AssertionError(f"{path} has been loaded")


# What comes back


def assert_comes_back(path: Path, options: LoadOptions) -> None:
    loaded = keep(path, options)
    found = any_size().find(path, options, load_file)
    assert (found is None) == (not len(loaded.activities)), "without any GPU work nothing is gained"
    assert found is None or not differences(load_file(path, options, silent), found)


@pytest.mark.deep
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_every_real_trace_is_the_same_from_the_cache(path: Path) -> None:
    assert_comes_back(path, FORWARD)


@pytest.mark.deep
@pytest.mark.parametrize("path", [p for p in REAL if is_small(p)], ids=lambda path: path.name)
@pytest.mark.parametrize("options", [LoadOptions(), EVERYTHING], ids=str)
def test_small_real_traces_are_the_same_read_otherwise(path: Path, options: LoadOptions) -> None:
    assert_comes_back(path, options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["decode_small.sqlite", "torch_small.pt.trace.json.gz"])
def test_every_sample_is_the_same_from_the_cache(name: str, options: LoadOptions) -> None:
    assert_comes_back(SAMPLES / name, options)


def test_a_trace_is_the_same_from_the_cache(trace: Path) -> None:
    assert_comes_back(trace, LoadOptions())


def test_a_trace_of_which_nothing_ran_on_a_gpu_is_not_kept(tmp_path: Path, home: Path) -> None:
    with NsysFile(tmp_path / "host.sqlite") as file:
        file.nvtx("step", 0, 100)
    keep(tmp_path / "host.sqlite")
    assert not home.exists()


def test_the_differences_that_are_looked_for_would_be_seen(tmp_path: Path) -> None:
    one, other = (written(tmp_path / f"{n}.sqlite", kernels=n) for n in (40, 41))
    loaded = [load_file(path, LoadOptions(), silent) for path in (one, other)]
    assert len(differences(*loaded)) > 20


def test_a_tree_and_its_export_read_no_row(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(trace)
    read, asked = column_file.ColumnFile.read, []

    def note(self: column_file.ColumnFile, name: str, dtype: str) -> object:
        asked.append(name)
        return read(self, name, dtype)

    monkeypatch.setattr(column_file.ColumnFile, "read", note)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    for metric in METRICS[:5]:
        assert project(found, None).total[0] and found.totals_by_group(metric)[0].sum() >= 0
    assert found.gpu_time and found.counts and found.coverage and found.iterations
    assert not [name for name in asked if name.startswith(("rows", "busy"))]
    assert project_tree(found, where=(Time(0, 2000),)).total[0] < found.gpu_time
    assert [name for name in asked if name.startswith("rows")]


def test_times_of_gpus_are_made_of_the_rows_and_idle_time_of_the_trace(trace: Path) -> None:
    loaded = load_file(trace, LoadOptions(), silent)
    keep(trace)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    for metric in ("exposed", "waiting"):
        found = found if metric == "exposed" else any_size().find(trace, LoadOptions(), load_file)
        assert found is not None
        own, again = (project_tree(one, metric=metric) for one in (loaded, found))
        assert own.total[0] and again.total.tolist() == own.total.tolist()
        assert list(map(again.name, range(len(again)))) == list(map(own.name, range(len(own))))


def test_work_of_operators_is_kept_and_rated_by_what_is_said_now(trace: Path) -> None:
    loaded = keep(trace).work
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert loaded is not None and found is not None and found.work is not None
    assert loaded.flops.any() and found.work.flops.tolist() == loaded.flops.tolist()
    typed = replace(found, work_options=WorkOptions({"fp16": 1.0}, dtype="fp16"))
    assert typed.work is not None
    with pytest.raises(AssertionError, match="has been loaded"):  # bytes are to be counted
        typed.work.shared  # noqa: B018 (asked for)


def test_what_operators_did_is_told_without_reading_rows(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = keep(trace)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    monkeypatch.setattr(KeptRows, "activity_column", not_loaded)
    monkeypatch.setattr(KeptRows, "groups", not_loaded)
    known, own = count_operators(found), count_operators(loaded)
    assert known is not None and own is not None and own.flops.any()
    assert known.columns.tolist() == own.columns.tolist()
    assert whole_of(found, known).columns.tolist() == whole_of(loaded, own).columns.tolist()
    assert found.work is not None and loaded.work is not None
    assert (found.work.calls, found.work.bare) == (loaded.work.calls, loaded.work.bare)


def test_sums_at_other_peaks_are_worked_out_anew(trace: Path) -> None:
    loaded = keep(trace)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    said = WorkOptions({"fp32": 1e-6}, 1e6)
    again, own = (count_operators(replace(one, work_options=said)) for one in (found, loaded))
    assert again is not None and own is not None
    assert again.columns.tolist() == own.columns.tolist()
    assert again.memory_known == own.memory_known


def test_only_what_the_cache_lacks_is_read_from_the_trace(trace: Path) -> None:
    keep(trace)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    found.activities.start, found.iterations, found.launches  # noqa: B018 (asked for)
    for part in ("host", "ranges", "calls"):
        with pytest.raises(AssertionError, match="has been loaded"):
            getattr(found, part)


def test_the_trace_is_read_once_for_all_that_the_cache_lacks(trace: Path) -> None:
    keep(trace)
    loads = []

    def load(*args: object) -> object:
        loads.append(args)
        return load_file(*args)  # type: ignore[arg-type]

    found = any_size().find(trace, LoadOptions(), load)  # type: ignore[arg-type]
    assert found is not None
    assert len(found.host) and len(found.ranges or ()) and len(found.calls or ())
    assert len(loads) == 1


def test_the_path_is_the_one_that_was_named(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(trace)
    monkeypatch.chdir(trace.parent)
    (trace.parent / "link.sqlite").symlink_to(trace)
    for name in ("trace.sqlite", "link.sqlite"):
        found = find(Path(name))
        assert found is not None
        assert found.meta.path == found.sources[0].meta.path == name


def dump(path: Path, ended: bool) -> Path:
    file = DumpFile()
    program = Program(file)
    for number in range(30):
        program.push(100, f"step {number}", 0)
        program.launch(100, "gemm", 1 + number % 3, False, True)
        program.block(100, 47, 1, "gemm" if number % 2 else None)
        program.pop(100, 0)
    program.end()
    file.ended = ended
    path.write_bytes(file.data())
    return path


def test_recordings_are_kept_once_they_are_complete(tmp_path: Path, home: Path) -> None:
    keep(dump(tmp_path / "1.fdump", ended=False))
    assert not home.exists()
    complete = dump(tmp_path / "2.fdump", ended=True)
    keep(complete)
    found = find(complete)
    assert found is not None
    assert not differences(load_file(complete, LoadOptions(), silent), found)


def test_recordings_with_samples_are_not_kept(home: Path) -> None:
    """What is said of these depends on the files beside them, and on what disassembles them."""
    keep(SAMPLES / "six_levels" / "tiny_llm.fdump")
    assert not home.exists()


def torch(path: Path) -> Path:
    """A trace of PyTorch: a function within a range, then such a range within such a function."""
    file = KinetoFile()
    for number, (annotation, function) in enumerate([(0, 10), (310, 300)], 1):
        file.annotation("step", annotation, annotation + 200)
        file.python("model.py(3): forward", function, function + 190)
        at = 300 * number
        file.launch(number, (at - 250, at - 240), (at + 700, at + 730), "gemm")
    return file.write(path)


def test_functions_and_ranges_are_nested_as_in_the_trace(tmp_path: Path) -> None:
    path = torch(tmp_path / "trace.json")
    loaded = keep(path)
    nested = loaded.with_nested
    assert len(nested.activities.groups) > len(loaded.activities.groups)
    found = find(path)
    assert found is not None
    assert len(found.with_nested.activities.groups) == len(nested.activities.groups)
    assert_comes_back(path, FORWARD)


def test_forward_operators_tell_entries_of_pytorch_apart(tmp_path: Path) -> None:
    path = torch(tmp_path / "trace.json")
    keep(path, FORWARD)
    assert find(path, LoadOptions()) is None
    assert find(path, LoadOptions("clean", True, True)) is not None, "NVTX is not there"


def test_files_of_stacks_are_not_kept(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text("a;b 1\n")
    keep(path)
    assert not home.exists()


def test_options_that_matter_to_the_format_tell_entries_apart(trace: Path, home: Path) -> None:
    keep(trace)
    assert find(trace, FORWARD) is not None  # of backward passes, which NVTX does not know
    raw = LoadOptions("raw")
    assert find(trace, raw) is None
    keep(trace, raw)
    assert find(trace, raw) is not None
    assert find(trace) is not None
    assert len(list(home.iterdir())) == 2


# What is not the same any more


def test_a_trace_that_has_changed_is_not_found(trace: Path, home: Path) -> None:
    keep(trace)
    with trace.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    assert find(trace) is None
    keep(trace, LoadOptions("raw"))
    assert len(list(home.iterdir())) == 1, "the older state stays"


def test_a_change_that_hides_itself_is_seen(trace: Path) -> None:
    """The time of the inode is nobody's to set."""
    keep(trace)
    before = trace.stat()
    data = trace.read_bytes()
    trace.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(trace, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert find(trace) is None


def test_a_copy_over_it_is_another_trace(trace: Path, tmp_path: Path) -> None:
    keep(trace)
    shutil.copy2(trace, tmp_path / "copy.sqlite")
    (tmp_path / "copy.sqlite").replace(trace)
    assert find(trace) is None


def test_another_version_finds_nothing(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(trace)
    with monkeypatch.context() as patch:
        patch.setattr(profile_cache, "__version__", "0.0.1")
        assert find(trace) is None
    assert find(trace) is not None
    monkeypatch.setattr(profile_cache, "_CONTENTS", 0)
    assert find(trace) is None


def test_a_trace_that_changes_while_it_is_loaded_is_not_kept(trace: Path, home: Path) -> None:
    cache = any_size()

    def load(path: Path, options: LoadOptions, progress: Progress) -> object:
        profile = load_file(path, options, progress)
        os.utime(path)
        return profile

    cache.load(trace, LoadOptions(), load, silent)  # type: ignore[arg-type]
    cache.write()
    assert not home.exists()


def test_a_trace_that_has_just_been_written_is_not_kept(trace: Path, home: Path) -> None:
    """A later change within the same tick of the clock could not be seen."""
    cache = ProfileCache(least=0)
    cache.load(trace, LoadOptions(), load_file, silent)
    cache.write()
    assert not home.exists()


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_database_that_is_being_written_to_is_not_kept(end: str, trace: Path, home: Path) -> None:
    beside = trace.with_name(trace.name + end)
    beside.write_bytes(b"more")
    keep(trace)
    assert not home.exists()
    beside.unlink()
    keep(trace)
    beside.write_bytes(b"more")
    assert find(trace) is None


def test_small_traces_are_not_kept(trace: Path, home: Path) -> None:
    for least, kept in ((trace.stat().st_size + 1, False), (trace.stat().st_size, True)):
        cache = ProfileCache(least=least, settled=0)
        cache.load(trace, LoadOptions(), load_file, silent)
        cache.write()
        assert home.exists() is kept


def test_a_packed_trace_counts_by_what_it_holds(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "torch.json.gz"
    shutil.copy(SAMPLES / "torch_small.pt.trace.json.gz", path)
    cache = ProfileCache(least=5 * path.stat().st_size, settled=0)
    cache.load(path, LoadOptions(), load_file, silent)
    cache.write()
    assert home.exists()


def test_a_trace_that_is_gone_is_reported_by_its_reader(trace: Path) -> None:
    keep(trace)
    trace.unlink()
    with pytest.raises(InputError, match="no such file"):
        any_size().open(trace, LoadOptions(), load_file, silent)


@pytest.mark.parametrize("part", ["host", "ranges", "calls", "launches"])
def test_what_is_asked_of_a_trace_that_has_changed_or_gone_is_an_error(
    part: str, trace: Path
) -> None:
    keep(trace)
    changed, gone = find(trace), find(trace)
    os.utime(trace)
    with pytest.raises(InputError, match="has changed since it was opened: open it again"):
        getattr(changed, part)
    trace.unlink()
    with pytest.raises(InputError, match="no such file"):
        getattr(gone, part)


def test_a_load_that_is_stopped_keeps_nothing(trace: Path, home: Path) -> None:
    def stop(*_: object) -> None:
        raise CancelledError("stopped")

    cache = any_size()
    with pytest.raises(CancelledError):
        cache.open(trace, LoadOptions(), load_file, stop)
    cache.write()
    assert not list(home.iterdir())


# Where it lies


def test_profiles_are_for_this_user_alone(trace: Path, home: Path) -> None:
    keep(trace)
    assert home.stat().st_mode & 0o777 == 0o700
    assert kept_file(home).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_profile_that_others_may_write_to_is_not_used(mode: int, trace: Path, home: Path) -> None:
    keep(trace)
    kept_file(home).chmod(mode)
    assert find(trace) is None
    keep(trace)
    assert find(trace) is not None


@needs_root
def test_a_profile_of_another_user_is_not_used(trace: Path, home: Path) -> None:
    keep(trace)
    os.chown(kept_file(home), OTHER, OTHER)
    assert find(trace) is None


@needs_root
def test_a_folder_of_another_user_is_not_used(trace: Path, home: Path) -> None:
    keep(trace)
    os.chown(home, OTHER, OTHER)
    assert find(trace) is None
    assert any_size().open(trace, LoadOptions(), load_file, silent).gpu_time
    keep(trace)


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_what_is_no_file_is_not_used(what: str, trace: Path, home: Path) -> None:
    keep(trace)
    path = kept_file(home)
    moved = path.rename(trace.parent / "moved")
    if what == "link":
        path.symlink_to(moved)
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    assert find(trace) is None


def test_without_a_folder_traces_open_all_the_same(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep(trace)
    assert find(trace) is None


_Usage = namedtuple("_Usage", "total used free")


@pytest.mark.parametrize(
    ("total", "free", "kept"),
    [(10**12, 5 * 10**9, False), (10**12, 6 * 10**9, True), (10**10, 10**9, False)],
)
def test_nothing_is_kept_on_a_disk_that_is_nearly_full(
    total: int, free: int, kept: bool, trace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = _Usage(total, total - free, free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    keep(trace)
    assert home.exists() is kept


def test_a_full_disk_leaves_nothing_behind(
    trace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(profile_cache, "write_columns", fill)
    keep(trace)
    assert not list(home.iterdir())


def test_a_later_profile_takes_the_place_of_what_was_not_used_for_longest(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [written(tmp_path / f"{number}.sqlite") for number in range(3)]
    keep(paths[0])
    size = kept_file(home).stat().st_size
    monkeypatch.setenv("FLAME_CACHE_SIZE", f"{5 * size // 2000}kB")
    keep(paths[1])
    for path in home.iterdir():
        os.utime(path, (0, path.stat().st_mtime - 100))
    find(paths[0])
    keep(paths[2])
    assert [find(path) is not None for path in paths] == [True, False, True]


def test_two_processes_that_keep_it_at_once_both_keep_it(trace: Path, home: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.core.reopening.conftest import keep\n"
        f"for _ in range(15): keep(Path({str(trace)!r}))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    found = 0
    while any(writer.poll() is None for writer in writers):
        profile = find(trace)
        if profile is not None:
            found += 1
            assert profile.activities.start.sum() == profile.activities.start.sum()
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0]
    assert found and find(trace) is not None
    assert len(list(home.iterdir())) == 1


def test_a_profile_that_is_removed_while_it_is_used_goes_on(trace: Path, home: Path) -> None:
    loaded = keep(trace)
    found = find(trace)
    assert found is not None
    Cache("profiles").drop(kept_file(home))
    np.testing.assert_array_equal(found.activities.start, loaded.activities.start)


# Several


def test_each_of_several_files_is_kept_and_found(tmp_path: Path, home: Path) -> None:
    paths = [written(tmp_path / f"rank{number}.sqlite", 20 + number) for number in range(3)]
    plain = load_all(paths)
    keep(paths[1])
    some = load_all(paths, cache=any_size())
    assert len(list(home.iterdir())) == 3
    every = load_all(paths, cache=any_size())
    assert not differences(plain, some)
    assert not differences(plain, every)


def test_samples_of_nsight_compute_go_into_a_trace_from_the_cache(
    trace: Path, tmp_path: Path
) -> None:
    page = sass_page("gemm0", [Row("LDG.E R2, [R4]", {"stall_wait": 7})])
    (tmp_path / "page.csv").write_text(page, "utf-8")
    options = LoadOptions(ncu=(str(tmp_path / "page.csv"),))
    plain = load_all([trace], options)
    load_all([trace], options, cache=(cache := any_size()))
    cache.write()
    assert plain.sampling is not None
    assert not differences(plain, load_all([trace], options, cache=any_size()))


def test_a_warning_that_names_the_trace_keeps_it_from_being_kept(trace: Path, home: Path) -> None:
    """It may be opened by another name the next time."""

    def load(path: Path, options: LoadOptions, progress: Progress) -> Profile:
        return replace(load_file(path, options, progress), warnings=(f"{path.name}: odd",))

    cache = any_size()
    cache.load(trace, LoadOptions(), load, silent)
    cache.write()
    assert not home.exists()


def test_names_that_are_no_text_are_not_kept(tmp_path: Path, home: Path) -> None:
    cache = any_size()
    profile = cache.load(written(tmp_path / "trace.sqlite"), FORWARD, _with_a_surrogate, silent)
    cache.write()
    assert profile.gpu_time
    assert not list(home.glob("*"))


def _with_a_surrogate(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    profile = load_file(path, options, progress)
    frames = (*profile.frames.frames[:-1], Frame(Kind.KERNEL, "\udc80"))
    return replace(profile, frames=FrameTable(frames, {}))


def test_phases_of_what_is_found_again_are_those_of_what_was_read(
    trace: Path, tmp_path: Path
) -> None:
    phases = tmp_path / "phases.json"
    phases.write_text('{"even": ["re:[02468]$"]}')
    options, selection = LoadOptions(phases=str(phases)), select("phase,kernel")
    trees = []
    for _ in range(2):
        cache = any_size()
        profile = load_all([trace], options, cache=cache)
        cache.write()
        tree = project(profile, selection)
        trees.append([(tree.names(node), int(tree.total[node])) for node in range(len(tree))])
    assert profile.known is not None, "it has been found"
    assert trees[0] == trees[1]
    assert {path[0] for path, _ in trees[0][1:]} <= {"even", "unmapped"}
