"""PC samples of Nsight Compute in a trace: each kernel has its own, all of them, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flame.core.errors import InputError, UsageError
from flame.core.loading.many import load, load_all
from flame.core.loading.ncu import read_ncu_files
from flame.core.model.frames import FrameBuilder
from flame.core.model.pc_samples import Code, CodeSamples, Sampling, SamplingBuilder
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, silent
from flame.core.readers.ncu.result import NcuFile
from flame.core.sampling.attach import attach_sampling
from flame.core.sampling.ncu_join import join_samples
from tests.conftest import TRACES
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.ncufile import BASE, Line, Row, cuda_page, sass_page
from tests.support.writers.nsysfile import HTOD, NsysFile

WAIT, LONG, BARRIER = "stall_wait", "stall_long_sb", "stall_barrier"
GEMM = "void gemm<(int)1>(float *)"
CODE = [Row("LDG.E R2, [R4]", {LONG: 6, WAIT: 1}), Row("EXIT", {WAIT: 3})]
REAL = TRACES / "ncu" / "stalls_julia.sass.csv"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three launches of gemm, 10, 20 and 30 ns, one of copy, and a memcpy."""
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        file.kernel("gemm", 0, 10, demangled=GEMM, mangled="_Z4gemmILi1EEvPf")
        file.kernel("gemm", 20, 40, demangled=GEMM, mangled="_Z4gemmILi1EEvPf")
        file.kernel("gemm", 50, 80, demangled=GEMM, mangled="_Z4gemmILi1EEvPf", stream=9)
        file.kernel("copy", 90, 95, demangled="copy(int)", mangled="_Z4copyi")
        file.memcpy(HTOD, 100, 110)
    return path


def written(trace: Path, pages: Sequence[str]) -> list[str]:
    """The pages as files beside the trace."""
    paths = [trace.with_name(f"source{number}.csv") for number in range(len(pages))]
    for path, page in zip(paths, pages, strict=True):
        path.write_text(page, "utf-8")
    return list(map(str, paths))


def load_with(trace: Path, *pages: str) -> Profile:
    return load(trace, LoadOptions(ncu=tuple(written(trace, pages))))


def ncu_files(trace: Path, *pages: str) -> list[NcuFile]:
    return read_ncu_files(LoadOptions(ncu=tuple(written(trace, pages))), silent)


def samples(profile: Profile) -> Counter[tuple[str, str, str]]:
    """Samples by kernel, instruction and reason, from the tree."""
    tree = project_tree(profile, "kernel,sass,stall", metric="stalls")
    found: Counter[tuple[str, str, str]] = Counter()
    for node in range(len(tree)):
        path = tuple(tree.name(at) for at in tree.path(node))[1:]
        if len(path) == 3:
            found[path] += int(tree.own[node])
    return found


def rows(profile: Profile) -> list[int]:
    """Samples of every launch, by start."""
    table = profile.activities
    found: list[int] = table.measures["stalls"][np.argsort(table.start)].tolist()
    return found


IN_GEMM = {
    ("gemm", "+0x0000 LDG.E R2, [R4]", "Long Scoreboard"): 6,
    ("gemm", "+0x0000 LDG.E R2, [R4]", "Wait"): 1,
    ("gemm", "+0x0010 EXIT", "Wait"): 3,
}


@pytest.mark.parametrize(
    "name", ["_Z4gemmILi1EEvPf", GEMM, "void gemm<1>(float*)", "gemm", "void gemm<1>(T1 *)"]
)
def test_samples_stand_below_their_kernel(name: str, trace: Path) -> None:
    profile = load_with(trace, sass_page(name, CODE))
    assert samples(profile) == IN_GEMM
    assert told(profile) == []
    assert project_tree(profile, metric="stalls").total[0] == 10


def test_launches_have_samples_by_their_time(trace: Path) -> None:
    assert rows(load_with(trace, sass_page(GEMM, CODE))) == [1, 4, 5, 0, 0]


def test_gpu_time_is_what_it_was(trace: Path) -> None:
    profile, bare = load_with(trace, sass_page(GEMM, CODE)), load(trace)
    tree = project_tree(profile, "kernel,sass,stall")
    assert tree.total[0] == bare.gpu_time == profile.gpu_time
    assert tree.own.sum() == bare.gpu_time
    assert (
        project_tree(profile, "kernel").total.tolist()
        == project_tree(bare, "kernel").total.tolist()
    )


def test_a_symbol_is_what_the_code_is_called(trace: Path) -> None:
    sampling = load_with(trace, sass_page(GEMM, CODE)).sampling
    assert sampling is not None
    assert [code.name for code in sampling.codes] == ["_Z4gemmILi1EEvPf"]
    assert sampling.exact.tolist() == [False]


def test_results_of_one_kernel_are_summed(trace: Path) -> None:
    other = [Row("LDG.E R2, [R4]", {LONG: 1, BARRIER: 2}), Row("EXIT")]
    pages = [sass_page(GEMM, CODE), sass_page("_Z4gemmILi1EEvPf", other, BASE + 4096)]
    expected = Counter(IN_GEMM)
    expected["gemm", "+0x0000 LDG.E R2, [R4]", "Long Scoreboard"] += 1
    expected["gemm", "+0x0000 LDG.E R2, [R4]", "Barrier"] += 2
    for profile in (load_with(trace, "".join(pages)), load_with(trace, *pages)):
        assert samples(profile) == expected
        assert profile.sampling is not None
        assert len(profile.sampling) == len(profile.sampling.codes) == 1
        assert rows(profile) == [2, 4, 7, 0, 0]


def test_results_of_one_kernel_may_be_spelled_differently(trace: Path) -> None:
    pages = [sass_page(name, CODE) for name in (GEMM, "void gemm<1>(T1 *)")]
    profile = load_with(trace, *pages)
    assert samples(profile) == {key: 2 * number for key, number in IN_GEMM.items()}
    assert told(profile) == []


def test_results_in_other_code_stay_apart(trace: Path) -> None:
    other = [Row("NOP", {WAIT: 4}), Row("EXIT", {WAIT: 1})]
    profile = load_with(trace, sass_page(GEMM, CODE) + sass_page(GEMM, other))
    assert profile.sampling is not None
    assert [len(profile.sampling), len(profile.sampling.codes)] == [1, 2]
    expected = Counter(IN_GEMM)
    expected["gemm", "+0x0000 NOP", "Wait"] = 4
    expected["gemm", "+0x0010 EXIT", "Wait"] += 1
    assert samples(profile) == expected


def test_each_kernel_has_its_own(trace: Path) -> None:
    profile = load_with(
        trace, sass_page(GEMM, CODE) + sass_page("copy(int)", [Row("EXIT", {WAIT: 8})])
    )
    assert samples(profile) == {**IN_GEMM, ("copy", "+0x0000 EXIT", "Wait"): 8}
    assert rows(profile) == [1, 4, 5, 8, 0]


def test_source_lines_are_kept(trace: Path) -> None:
    lines = [Line(7, "x = y[i];", [(0, CODE[0])]), Line(9, "}", [(1, CODE[1])])]
    profile = load_with(trace, cuda_page("gemm", "/a/gemm.cu", lines, [LONG, WAIT]))
    tree = project_tree(profile, "sass", metric="stalls")
    frames = [tree.frames[at] for at in tree.frame[1:].tolist()]
    assert {(frame.file, frame.line) for frame in frames} == {("/a/gemm.cu", 7), ("/a/gemm.cu", 9)}


def told(profile: Profile) -> list[str]:
    """What is said of files of Nsight Compute."""
    return [text for text in profile.warnings if text.startswith(("source", "--ncu"))]


def test_kernels_that_are_not_there_are_told(trace: Path) -> None:
    page = sass_page(GEMM, CODE) + "".join(
        sass_page(f"k{number}(int)", CODE) for number in range(5)
    )
    profile = load_with(trace, page)
    (said,) = told(profile)
    assert said.startswith("source0.csv: kernels that are not in the trace, left out: k0, k1, k2 ")
    assert said.endswith("and 2 more")
    assert samples(profile) == IN_GEMM


def test_where_nothing_fits_both_sides_are_told_and_the_trace_opens(trace: Path) -> None:
    profile = load_with(trace, sass_page("other(int)", CODE))
    (said,) = told(profile)
    assert "it has other, the trace has " in said
    assert "gemm" in said
    assert profile.sampling is None
    assert profile.gpu_time == 75


def test_what_may_be_several_kernels_is_told(trace: Path) -> None:
    with NsysFile(trace.with_name("two.sqlite")) as file:
        file.kernel("gemm", 0, 10, demangled="void gemm<1>(int)", mangled="_Z4gemmILi1EEvi")
        file.kernel("gemm", 20, 40, demangled="void gemm<2>(int)", mangled="_Z4gemmILi2EEvi")
    trace = trace.with_name("two.sqlite")
    profile = load_with(trace, sass_page("gemm", CODE))
    (said,) = told(profile)
    assert "may be several" in said
    assert "--print-kernel-base mangled" in said
    assert profile.sampling is None
    assert sum(samples(load_with(trace, sass_page("_Z4gemmILi2EEvi", CODE))).values()) == 10


@pytest.mark.parametrize(("pages", "samples_of_all"), [(["gemm<1>(int)"], 10), (["gemm"] * 2, 20)])
def test_a_trace_of_base_names_alone(pages: list[str], samples_of_all: int, trace: Path) -> None:
    bare = base_names_alone(load(trace))
    profile = join_samples(bare, ncu_files(trace, *(sass_page(name, CODE) for name in pages)))
    assert samples(profile).total() == samples_of_all


def test_several_kernels_that_may_all_be_one_base_name_are_told(trace: Path) -> None:
    pages = [sass_page(name, CODE) for name in ("gemm<1>(int)", "gemm<2>(int)")]
    profile = join_samples(base_names_alone(load(trace)), ncu_files(trace, *pages))
    (said,) = told(profile)
    assert said.endswith("the trace has only base names of kernels, left out: gemm")
    assert profile.sampling is None


def base_names_alone(profile: Profile) -> Profile:
    """``profile`` without any other names of its kernels."""
    frames = tuple(one._replace(extra=()) for one in profile.frames.frames)
    return replace(profile, frames=replace(profile.frames, frames=frames))


def test_a_trace_of_the_pytorch_profiler(tmp_path: Path) -> None:
    file = KinetoFile()
    file.kernel("void gemm<1>(float*)", 0, 10)
    profile = load_with(file.write(tmp_path / "trace.json"), sass_page("_Z4gemmILi1EEvPf", CODE))
    assert samples(profile) == IN_GEMM


def test_several_traces_share_what_is_of_their_kernel(trace: Path) -> None:
    page = trace.with_name("source.csv")
    page.write_text(sass_page(GEMM, CODE), "utf-8")
    other = trace.with_name("other.sqlite")
    other.write_bytes(trace.read_bytes())
    profile = load_all([trace, other], LoadOptions(ncu=(str(page),)))
    assert samples(profile) == IN_GEMM
    assert profile.sampling is not None
    assert len(profile.sampling) == 1


def test_recorded_samples_win(trace: Path) -> None:
    """Those of one stream are recorded: the others have those of the report."""
    path = trace.with_name("source.csv")
    path.write_text(sass_page(GEMM, CODE) + sass_page("copy(int)", CODE), "utf-8")
    recorded = with_recorded(load(trace), stream=9, kernel="copy")
    profile = join_samples(recorded, read_ncu_files(LoadOptions(ncu=(str(path),)), silent))
    assert rows(recorded) == [0, 0, 100, 100, 0]
    assert rows(profile) == [3, 7, 100, 100, 0]
    assert profile.sampling is not None
    assert profile.sampling.exact.tolist() == [True, False]
    assert instructions(profile.sampling) == [["k+0x0"], ["+0x0000 LDG.E R2, [R4]", "+0x0010 EXIT"]]
    assert sum(samples(profile).values()) == 210
    assert (
        profile.warnings[-1] == "--ncu: kernels that have recorded samples, left as they are: copy"
    )


def instructions(sampling: Sampling) -> list[list[str]]:
    """What the sampled instructions of every distribution are called."""
    found = []
    for number in range(len(sampling)):
        at = sampling.entries(number)
        places = zip(sampling.code[at].tolist(), sampling.place[at].tolist(), strict=True)
        found.append(sorted({sampling.codes[code].instruction(place) for code, place in places}))
    return found


def with_recorded(profile: Profile, stream: int, kernel: str) -> Profile:
    """``profile`` with 100 samples in every launch on a stream, and of a kernel."""
    frames = FrameBuilder.from_table(profile.frames)
    code = Code.unknown("k", np.array([0, 16]))
    groups = profile.activities.groups
    ours = np.array([profile.frames[at].name == kernel for at in groups.frame.tolist()])
    mine = ours | (groups.stream == stream)
    place = np.zeros(1, np.int32)
    builder = SamplingBuilder(frames)
    builder.add([CodeSamples(code, place, place, np.array([200]), ("wait",))], exact=True)
    sampling = builder.build(np.where(mine, 0, -1).astype(np.int32))
    each = np.where(mine[groups.of_row], 100, 0)
    return attach_sampling(profile, frames, sampling, each)


def test_a_file_named_twice_would_count_twice(trace: Path) -> None:
    page = trace.with_name("source.csv")
    page.write_text(sass_page(GEMM, CODE), "utf-8")
    with pytest.raises(UsageError, match="is named twice"):
        load(trace, LoadOptions(ncu=(str(page), str(page))))


def test_a_file_that_cannot_be_read_is_refused_before_the_trace_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing.csv: no such file"):
        load(tmp_path / "no.sqlite", LoadOptions(ncu=(str(tmp_path / "missing.csv"),)))


def test_a_file_among_traces_is_told_where_it_belongs(trace: Path) -> None:
    page = trace.with_name("source.csv")
    page.write_text(sass_page(GEMM, CODE), "utf-8")
    with pytest.raises(UsageError) as caught:
        load_all([trace, page])
    assert str(caught.value).endswith(f"flame view {trace} --ncu {page}")


@pytest.mark.skipif(not REAL.exists(), reason=f"no real page {REAL}")
def test_the_real_page_in_a_trace_of_its_kernels(tmp_path: Path) -> None:
    names = ["julia__5_6739", "julia_bb_4477"]
    with NsysFile(tmp_path / "trace.sqlite") as file:
        for at, name in enumerate(names):
            file.kernel(name, 100 * at, 100 * at + 50 + at)
    profile = load(tmp_path / "trace.sqlite", LoadOptions(ncu=(str(REAL),)))
    assert rows(profile) == [48443, 956805]
    tree = project_tree(profile, "kernel,sass,stall")
    assert tree.total[0] == tree.own.sum() == 101
