"""A trace opened from the cache is the one that was loaded; whatever else is there is not used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.loading.file import load_file
from flame.core.loading.many import load_all
from flame.core.model.frames import Frame, FrameTable, Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress, silent
from flame.core.projection.project import project
from flame.core.projection.selection import select
from tests.conftest import TRACES, is_small
from tests.core.reopening.conftest import any_size, find, keep, written
from tests.support.paths import SAMPLES
from tests.support.profiles.same_profiles import differences
from tests.support.tiers import deep_except
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.fdumpscripts import Program
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.ncufile import Row, sass_page
from tests.support.writers.nsysfile import NsysFile

FORWARD = LoadOptions(forward=True)
EVERYTHING = LoadOptions("raw", True, True)
OPTIONS = deep_except([FORWARD], [FORWARD, LoadOptions(), EVERYTHING])
REAL = sorted((*TRACES.glob("nsys/*.sqlite"), *TRACES.glob("kineto/*.json.gz")))


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
