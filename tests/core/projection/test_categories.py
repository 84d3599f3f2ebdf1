"""Trees by short names and by category have the sums that plain loops find in the rows."""

from __future__ import annotations

from collections import Counter
from itertools import compress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.analysis.search import search
from flame.core.analysis.trace_summary import summarize
from flame.core.loading.many import load_all
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.profile import Profile
from flame.core.names.kernel_category import COPY, OTHER, category_of
from flame.core.names.kernel_short import short_names
from flame.core.options import LoadOptions, silent
from flame.core.projection.filters import HideStacks, Kernel, ShowStacks
from flame.core.projection.labels import KERNEL_NAMES, Labeller, Naming
from flame.core.regex import compile_expression
from flame.core.timeline.highlight import CATEGORY_LOOKS, category_looks
from flame.core.timeline.intervals import timeline
from tests.conftest import TRACES, needs_traces
from tests.core.names.test_kernels_of_traces import TRACES_WITH_KERNELS
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves

NAMES = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps>>(int)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MaxOps>>(int)",
    "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::MaxOps>>(int)",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_tn_align4>(Params)",
    "void silu_and_mul_kernel<float>(float*)",
)


def kernel(full: str) -> Frame:
    base = full.partition("<")[0].rpartition("::")[2].removeprefix("void ")
    return Frame(Kind.KERNEL, base, extra=(("demangled", full),))


def table(frames: list[Frame]) -> FrameBuilder:
    builder = FrameBuilder()
    for frame in frames:
        builder.add(frame)
    return builder


@pytest.fixture
def profile() -> Profile:
    """A kernel of each of `NAMES`, longer and longer, a copy, a memset and a graph."""
    trace = Recorded()
    for place, full in enumerate(NAMES):
        begin, frame = 1_000 * place, kernel(full)
        trace.kernel(frame.name, begin, begin + 10 + place, extra=frame.extra)
    for place, kind in enumerate((Kind.MEMCPY, Kind.MEMSET, Kind.GRAPH)):
        trace.kernel(kind.title, 9_000 + 100 * place, 9_001 + 101 * place, kind=kind)
    return trace.profile()


# Names of a table of frames


@given(st.lists(st.sampled_from(NAMES) | st.sampled_from(["step", "main"]), max_size=9), st.data())
def test_a_table_that_grows_is_labelled_as_one_that_is_there_at_once(
    names: list[str], data: st.DataObject
) -> None:
    frames = [kernel(one) if "<" in one else Frame(Kind.NVTX, one) for one in names]
    cut = data.draw(st.integers(0, len(frames)))
    growing = Labeller(Naming("short"))
    growing.labels(table(frames[:cut]).build())
    found, whole = table(frames).build(), Labeller(Naming("short"))
    after, once = growing.labels(found), whole.labels(found)
    assert list(after.text) == list(once.text)
    assert after.shown.tolist() == once.shown.tolist()


def test_a_name_becomes_longer_when_another_kernel_of_it_comes() -> None:
    frames = [kernel(one) for one in NAMES[1:3]]
    labeller = Labeller(Naming("short"))
    assert labeller.labels(table(frames[:1]).build()).text[1] == "reduce<MaxOps>"
    grown = labeller.labels(table(frames).build())
    assert grown.text[1:] == ("reduce<MaxOps, 512>", "reduce<MaxOps, 128>")


# Trees


def test_short_names_keep_kernels_apart_that_base_names_merge(profile: Profile) -> None:
    base = leaves(project_tree(profile, "kernel", where=(Kernel("reduce"),)))
    assert base == {("reduce_kernel",): 33}
    short = leaves(project_tree(profile, "kernel", kernel_names="short", where=(Kernel("reduce"),)))
    assert short == {
        ("reduce<MeanOps>",): 10,
        ("reduce<MaxOps, 512>",): 11,
        ("reduce<MaxOps, 128>",): 12,
    }


def test_the_level_of_categories_is_one_frame_above_the_kernel(profile: Profile) -> None:
    assert leaves(project_tree(profile, "category")) == {
        ("normalisation and reduction",): 33,
        ("matrix product",): 13,
        ("elementwise",): 14,
        (COPY,): 3,
        (OTHER,): 3,
    }


@needs_traces
@pytest.mark.parametrize("trace", TRACES_WITH_KERNELS)
def test_trees_of_real_traces_have_the_sums_of_their_rows(trace: str) -> None:
    profile = load_all([next(TRACES.rglob(trace))], LoadOptions(), silent)
    if profile.resolved:
        pytest.skip("has no level but its stacks")
    frames, rows = profile.frames, profile.activities
    kinds = [Kind(kind) for kind in rows.kind.tolist()]
    named = [frames[at] for at in rows.frame.tolist()]
    pairs = [(one.name, one.get("demangled")) for one in named]
    is_kernel = [kind == Kind.KERNEL for kind in kinds]
    short = short_names(compress(pairs, is_kernel))
    expected: Counter[tuple[str, str]] = Counter()
    shares: Counter[str] = Counter()
    for kind, pair, ns in zip(kinds, pairs, rows.duration.tolist(), strict=True):
        category = OTHER if kind == Kind.GRAPH else COPY
        if kind == Kind.KERNEL:
            category = category_of(*pair)
            shares[category] += ns
        expected[category, short[pair] if kind == Kind.KERNEL else pair[0]] += ns
    tree = project_tree(profile, "category,kernel", metric="gpu", kernel_names="short")
    assert leaves(tree) == {path: ns for path, ns in expected.items() if ns}
    found = {name: share.ns for name, share in summarize(profile).categories.items()}
    assert found == {name: ns for name, ns in shares.items() if ns}


def test_shares_of_categories_are_of_kernels_alone(profile: Profile) -> None:
    shares = summarize(profile).categories
    assert list(shares) == ["normalisation and reduction", "elementwise", "matrix product"]
    assert sum(share.ns for share in shares.values()) == 60
    assert shares["elementwise"].percent == pytest.approx(100 * 14 / 60)


# Patterns


def test_patterns_of_base_names_match_whatever_is_shown(profile: Profile) -> None:
    tree = project_tree(profile, "kernel", kernel_names="short")
    assert search(tree, compile_expression("^reduce_kernel$")).total == 33
    assert search(tree, compile_expression("^reduce_kernel$"), exact=True).total == 0
    assert search(tree, compile_expression("MaxOps")).total == 23
    shown = project_tree(
        profile, "kernel", kernel_names="short", where=(ShowStacks("^reduce_kernel$"),)
    )
    assert sum(leaves(shown).values()) == 33
    hidden = project_tree(profile, "kernel", kernel_names="short", where=(HideStacks("Kernel2"),))
    assert sum(leaves(hidden).values()) == 66 - 13


def test_the_filter_of_kernels_knows_all_their_names(profile: Profile) -> None:
    for pattern, total in (("^reduce<Me", 10), ("^Kernel2$", 13), ("ReduceOp<float", 33)):
        for names in KERNEL_NAMES:
            tree = project_tree(profile, "kernel", kernel_names=names, where=(Kernel(pattern),))
            assert sum(leaves(tree).values()) == total


# Colours of the timeline


def test_what_ran_on_a_gpu_looks_like_its_category(profile: Profile) -> None:
    time = timeline(profile)
    looks = category_looks(time, profile)
    for item in range(len(time)):
        kind = Kind(int(time.kind[item]))
        frame = int(profile.grouping.category[time.frame[item]])
        assert (looks[item] >= CATEGORY_LOOKS) == (frame >= 0)
        assert kind != Kind.NVTX or looks[item] == Kind.NVTX
    assert len({int(look) for look in looks if look >= CATEGORY_LOOKS}) == 5
