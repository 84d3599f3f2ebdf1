"""What is exported and read back is the same tree, and exported again the same file."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.filter_options import where
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.exporters import folded, speedscope
from flame.exporters.stacks import encodable
from tests.conftest import NSYS_TRACES, TRACES, is_small
from tests.exporters.profiles import Row, chain, profile_of, some_rows
from tests.support.generated.sampled import Run, runs
from tests.support.paths import SAMPLES
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import deep_except, examples

SAMPLE = SAMPLES / "decode_small.sqlite"
REAL = [
    SAMPLE,
    *(TRACES / "nsys" / name for name in NSYS_TRACES),
    *sorted(TRACES.glob("kineto/*.json.gz")),
]

TITLES = {kind.title for kind in Kind}

Stacks = dict[tuple[tuple[Kind, str], ...], int]


def stacks(tree: StackTree) -> Stacks:
    """Own value by kinds and names, outermost first, of all that has one."""
    found: Counter[tuple[tuple[Kind, str], ...]] = Counter()
    path: list[tuple[Kind, str]] = []
    columns = (tree.frame.tolist(), tree.depth.tolist(), tree.own.tolist())
    for frame, depth, own in zip(*columns, strict=True):
        del path[max(depth - 1, 0) :]
        if depth:
            path.append((tree.frames[frame].kind, encodable(tree.text[frame])))
        if own:
            found[tuple(path)] += own
    return dict(found)


def names(found: Stacks) -> Counter[tuple[str, ...]]:
    """The same without the kinds."""
    merged: Counter[tuple[str, ...]] = Counter()
    for stack, value in found.items():
        merged[tuple(name for _, name in stack)] += value
    return merged


def written(profile: Profile, selection: Selection) -> bytes:
    file = io.BytesIO()
    speedscope.write(profile, selection, file, name="trace")
    return file.getvalue()


def folded_lines(tree: StackTree) -> bytes:
    file = io.BytesIO()
    folded.write(tree, file)
    return file.getvalue()


def opened(data: bytes, name: str = "export") -> Profile:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return load(path)


def check_speedscope(profile: Profile, selection: Selection) -> bool:
    """Whether the export of what is read back is the same file.

    It need not be where frames have no value under any metric: those are in the first one alone.
    """
    data = written(profile, selection)
    back = opened(data)
    first = project(profile, selection).metric
    assert back.default_metric == first.key
    for metric in profile.metrics:
        if metric == first or (metric.table == first.table and not metric.when_asked):
            chosen = Selection(selection.levels, selection.where, metric.key, selection.naming)
            expected = stacks(project(profile, chosen))
            if expected or metric == first:
                tree = project_tree(back, metric=metric.key)
                assert (tree.metric.title, tree.metric.unit) == (metric.title, metric.unit)
                assert stacks(tree) == expected
            else:
                assert metric.key not in {one.key for one in back.metrics}
    again = written(back, Selection())
    assert written(opened(again), Selection()) == again
    return again == data


def check_folded(tree: StackTree) -> None:
    lines = folded_lines(tree)
    back = project_tree(opened(lines))
    assert names(stacks(back)) == names(stacks(tree))
    assert folded_lines(back) == lines


@pytest.mark.parametrize(
    "path", deep_except([SAMPLE, *filter(is_small, REAL)], REAL), ids=lambda path: path.name
)
def test_a_trace_comes_back_from_speedscope(path: Path) -> None:
    profile = load(path)
    assert check_speedscope(profile, Selection())
    assert check_speedscope(profile, Selection(metric="host"))


@pytest.mark.parametrize(
    "path", deep_except([SAMPLE, *filter(is_small, REAL)], REAL), ids=lambda path: path.name
)
def test_a_trace_comes_back_from_folded_stacks(path: Path) -> None:
    profile = load(path)
    for metric in (profile.default_metric, "host", "count"):
        if project_tree(profile, metric=metric).total[0]:
            check_folded(project_tree(profile, metric=metric))


SELECTIONS = {
    "groups": Selection(("process", "thread", "device", "stream", "kernel")),
    "shapes": Selection(("nvtx", "shapes", "kernel")),
    "no frame for some": Selection(("nvtx",), where(kernel="gemm|softmax")),
    "another metric": Selection(metric="idle"),
    "one that is made": Selection(metric="waiting"),
    "smaller frames": Selection(where=where(min_percent=5)),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_every_selection_comes_back(name: str) -> None:
    profile = load(SAMPLE)
    assert check_speedscope(profile, SELECTIONS[name])
    check_folded(project(profile, SELECTIONS[name]))


def test_a_deep_stack_comes_back() -> None:
    file = io.BytesIO()
    speedscope.write_tree(chain(10_000), file, "")
    back = project_tree(opened(file.getvalue()))
    assert stacks(back) == stacks(chain(10_000))


# A Python frame of a file called `nvtx` could not be told from a range: no file is called so.
unambiguous = some_rows.filter(
    lambda rows: not any(file in TITLES for row in rows for _, file, _ in row.python)
)


@examples(0.5)
@given(unambiguous, st.sampled_from(["gpu", "count", "host"]))
def test_any_tree_comes_back_from_speedscope(rows: list[Row], metric: str) -> None:
    check_speedscope(profile_of(rows, host=rows), Selection(metric=metric))


plain = st.text("abc :_-<>é", max_size=4).map(str.strip).filter(bool)
plain_rows = st.lists(
    st.builds(
        Row,
        kernel=plain,
        duration=st.integers(1, 1 << 40),
        nvtx=st.lists(plain, max_size=3).map(tuple),
        launch=st.sampled_from(["cudaLaunchKernel", "cudaGraphLaunch"]),
    ),
    min_size=1,
    max_size=12,
)


@given(plain_rows)
def test_any_tree_comes_back_from_folded_stacks(rows: list[Row]) -> None:
    check_folded(project_tree(profile_of(rows)))


SAMPLED = st.sampled_from(
    [
        Selection(),
        Selection(("stall", "nvtx", "kernel")),
        Selection(("kernel", "sass", "stall"), metric="stalls"),
        Selection(("kernel", "sass"), metric="stalls"),
    ]
)


@examples(0.4)
@given(runs, SAMPLED)
def test_instructions_and_reasons_come_back(run: Run, selection: Selection) -> None:
    profile = run.profile()
    check_speedscope(profile, selection)
    tree = project(profile, selection)
    if tree.total[0]:
        check_folded(tree)


def test_an_instruction_comes_back_with_its_line() -> None:
    run = Run((((), (), "gemm", 70),), (((0, 0, 0, 1), (0, 3, 0, 2)),), (0,))
    profile = run.profile()
    back = opened(written(profile, Selection(("kernel", "sass"))))
    known = [frame for frame in back.frames.frames if frame.kind == Kind.SASS]
    assert [(frame.name, frame.file, frame.line) for frame in known] == [
        ("+0x0000 LDG.E R2, [R4]", "gemm.cu", 7),
        ("+0x0030 BAR.SYNC", "", 0),
    ]
