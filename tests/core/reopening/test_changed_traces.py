"""Traces that have changed, or may change yet, are not opened from the cache."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.errors import CancelledError, InputError
from flame.core.loading.file import load_file
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress, silent
from flame.core.reopening import profile_cache
from flame.core.reopening.profile_cache import ProfileCache
from tests.core.reopening.conftest import any_size, find, keep
from tests.support.paths import SAMPLES


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


def test_a_warning_that_names_the_trace_keeps_it_from_being_kept(trace: Path, home: Path) -> None:
    """It may be opened by another name the next time."""

    def load(path: Path, options: LoadOptions, progress: Progress) -> Profile:
        return replace(load_file(path, options, progress), warnings=(f"{path.name}: odd",))

    cache = any_size()
    cache.load(trace, LoadOptions(), load, silent)
    cache.write()
    assert not home.exists()
