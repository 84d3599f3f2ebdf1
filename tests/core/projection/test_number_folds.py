"""Siblings that differ only in numbers are shown as one, everywhere, and sums stay exact."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flame
from flame.core.errors import NoMatchError
from flame.core.model.profile import Profile
from flame.core.model.stacks import StackBuilder
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.projection.filters import HideFrames, HideStacks, ShowStacks, StackFilter
from flame.core.projection.labels import Naming
from flame.core.projection.number_folds import labels_of
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves

# An oracle in plain Python. Names are made of a text and numbers, and it is told of which.


@dataclass(frozen=True)
class Name:
    """A text with a `{}` for each of its numbers."""

    text: str
    numbers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.text.format(*self.numbers)

    def folded(self, slots: Iterable[int]) -> str:
        """The name with stars in ``slots``."""
        starred = set(slots)
        shown = ["*" if at in starred else str(n) for at, n in enumerate(self.numbers)]
        return self.text.format(*shown)


Names = tuple[Name, ...]


@dataclass(frozen=True)
class Launch:
    """A kernel, the Python functions and ranges around it, and how long it ran."""

    python: Names
    ranges: Names
    kernel: str
    time: int


Starred = dict[str, set[int]]


def starred_of(paths: Sequence[Names]) -> Starred:
    """The numbers that are folded in each text: a set of siblings at a time, until none is left."""
    starred: Starred = defaultdict(set)
    while True:
        siblings: defaultdict[tuple[tuple[str, ...], str], set[tuple[int, ...]]] = defaultdict(set)
        for path in paths:
            above: tuple[str, ...] = ()
            for name in path:
                siblings[above, name.text].add(name.numbers)
                above = (*above, name.folded(starred[name.text]))
        before = {text: set(slots) for text, slots in starred.items()}
        for (_, text), found in siblings.items():
            if len(found) > 8:
                starred[text] |= {
                    at for at, n in enumerate(zip(*found, strict=True)) if len(set(n)) > 1
                }
        if all(starred[text] == before.get(text, set()) for text in list(starred)):
            return starred


def expected(
    launches: Sequence[Launch], levels: str, layout: TreeLayout
) -> Counter[tuple[str, ...]]:
    """Time by path, of what is folded."""
    python = starred_of([launch.python for launch in launches])
    ranges = starred_of([launch.ranges for launch in launches])
    times: Counter[tuple[str, ...]] = Counter()
    for launch in launches:
        parts = {
            "python": [name.folded(python[name.text]) for name in launch.python],
            "nvtx": [name.folded(ranges[name.text]) for name in launch.ranges],
            "kernel": [launch.kernel],
        }
        kinds = [(level, name) for level in levels.split(",") for name in parts[level]]
        if layout.collapsed:
            kinds = [one for at, one in enumerate(kinds) if not at or kinds[at - 1] != one]
        path = tuple(name for _, name in (kinds[::-1] if layout.inverted else kinds))
        times[path] += launch.time
    return times


def recorded(launches: Sequence[Launch]) -> Profile:
    """A trace of ``launches``, one after the other."""
    trace = Recorded()
    for number, launch in enumerate(launches, 1):
        start = 1000 * number
        for depth, name in enumerate(launch.ranges):
            trace.range(str(name), start + depth, start + 900 - depth)
        trace.call("launch", start + 500, start + 501, number, python=map(str, launch.python))
        trace.kernel(launch.kernel, start + 600, start + 600 + launch.time, number)
    return trace.profile()


def own_times(tree: StackTree) -> Counter[tuple[str, ...]]:
    """Time by names: a function and a range may have the same one."""
    times: Counter[tuple[str, ...]] = Counter()
    for node in range(len(tree)):
        times[tree.names(node)] += int(tree.own[node])
    return +times


TEXTS = ("step {}", "decode bs={} v{}", "model.layers.{}.mlp", "layer_{}", "forward", "fp16")


@st.composite
def numbered(draw: st.DrawFn, most: int = 12) -> Name:
    text = draw(st.sampled_from(TEXTS))
    return Name(text, tuple(draw(st.integers(0, most)) for _ in range(text.count("{}"))))


paths = st.lists(numbered(2), max_size=2).map(tuple)
times = st.integers(1, 90)
kernels = st.sampled_from(["gemm", "copy 1", "copy 2"])


@st.composite
def series(draw: st.DrawFn) -> list[Launch]:
    """Launches below names that count up, with the same or counting names around and below."""
    text, above, below = draw(st.sampled_from(TEXTS)), draw(paths), draw(paths)
    number, slot = draw(st.integers(1, 12)), draw(st.integers(0, 1))
    counted, on_ranges = draw(st.booleans()), draw(st.booleans())
    launches = []
    for value in range(number):
        numbers = tuple(
            value if at == slot % text.count("{}") else 3 for at in range(text.count("{}"))
        )
        inner = (Name("req {}", (value,)),) if counted else below
        path = (*above, Name(text, numbers), *inner)
        python, ranges = ((), path) if on_ranges else (path, ())
        launches.append(Launch(python, ranges, draw(kernels), draw(times)))
    return launches


traces = st.lists(
    st.one_of(series(), st.builds(Launch, paths, paths, kernels, times).map(lambda one: [one])),
    min_size=1,
    max_size=5,
).map(lambda parts: [launch for part in parts for launch in part])
level_orders = st.sampled_from(["python,nvtx,kernel", "kernel,nvtx,python", "nvtx", "nvtx,python"])
layouts = st.builds(TreeLayout, st.booleans(), st.booleans())


@given(traces, level_orders, layouts)
def test_the_tree_is_the_one_that_sets_of_siblings_make(
    launches: list[Launch], levels: str, layout: TreeLayout
) -> None:
    tree = project_tree(recorded(launches), levels, fold_numbers=True, layout=layout)
    assert own_times(tree) == expected(launches, levels, layout)
    assert tree.total[0] == sum(launch.time for launch in launches)
    assert tree.count[0] == len(launches)


@given(traces, level_orders)
def test_no_two_siblings_of_a_folded_tree_have_one_name(
    launches: list[Launch], levels: str
) -> None:
    tree = project_tree(recorded(launches), levels, fold_numbers=True)
    for node in range(len(tree)):
        called = [(tree.kind(child), tree.name(child)) for child in tree.children(node)]
        assert len(called) == len(set(called))


@given(traces, level_orders, numbered(), st.sampled_from([ShowStacks, HideStacks, HideFrames]))
def test_filters_let_the_same_pass_whether_numbers_are_folded_or_not(
    launches: list[Launch], levels: str, name: Name, kind: type[ShowStacks]
) -> None:
    profile, where = recorded(launches), (kind(f"^{re.escape(str(name))}$"),)
    try:
        exact = project_tree(profile, levels, where)
    except NoMatchError:
        with pytest.raises(NoMatchError):
            project_tree(profile, levels, where, fold_numbers=True)
        return
    folded = project_tree(profile, levels, where, fold_numbers=True)
    assert folded.total[0] == exact.total[0]
    labels = labels_of(profile, Naming(numbers=True), profile.activities)
    renamed: Counter[tuple[str, ...]] = Counter()
    for node in range(len(exact)):
        frames = [int(exact.frame[step]) for step in exact.path(node)[1:]]
        renamed[tuple(labels.text[frame] for frame in frames)] += int(exact.own[node])
    assert own_times(folded) == +renamed


def steps(number: int, text: str = "step {}") -> list[Launch]:
    return [Launch((), (Name(text, (n,)),), "gemm", 10) for n in range(number)]


def names_of(tree: StackTree) -> list[str]:
    return sorted(tree.name(child) for child in tree.children(0))


def test_eight_siblings_stand_apart_and_nine_are_one() -> None:
    apart = project_tree(recorded(steps(8)), "nvtx", fold_numbers=True)
    assert names_of(apart) == [f"step {n}" for n in range(8)]
    assert names_of(project_tree(recorded(steps(9)), "nvtx", fold_numbers=True)) == ["step *"]


def test_names_are_exact_unless_folding_is_asked_for() -> None:
    assert len(names_of(project_tree(recorded(steps(20)), "nvtx"))) == 20


def test_a_number_that_is_equal_in_all_of_them_is_kept() -> None:
    launches = [Launch((), (Name("decode bs={} v{}", (4, n)),), "gemm", 10) for n in range(9)]
    tree = project_tree(recorded(launches), "nvtx", fold_numbers=True)
    assert names_of(tree) == ["decode bs=4 v*"]


def test_a_name_is_the_same_below_a_parent_with_few() -> None:
    few = [Launch((), (Name("warm-up"), Name("step {}", (n,))), "gemm", 10) for n in range(2)]
    tree = project_tree(recorded([*steps(9), *few]), "nvtx", fold_numbers=True)
    assert leaves(tree) == {("step *",): 90, ("warm-up", "step *"): 20}


def test_few_below_each_of_many_parents_stand_apart() -> None:
    launches = [
        Launch((), (Name(f"block {letter}"), Name("linear_{}", (n,))), "gemm", 10)
        for n, letter in enumerate("abcdefghijkl")
    ]
    tree = project_tree(recorded(launches), "nvtx", fold_numbers=True)
    assert tree.find(("block a", "linear_0")) > tree.find(("block a",)) > 0


def test_what_is_below_names_that_fold_are_siblings() -> None:
    launches = [
        Launch((), (Name("step {}", (n,)), Name("req {}", (n,))), "gemm", 10) for n in range(9)
    ]
    tree = project_tree(recorded(launches), "nvtx", fold_numbers=True)
    assert leaves(tree) == {("step *", "req *"): 90}


@pytest.mark.parametrize("kind", ["kernel", "launch", "device", "stream", "thread"])
def test_numbers_of_other_kinds_are_kept(kind: str) -> None:
    trace = Recorded()
    for number in range(1, 12):
        trace.call(f"launch {number}", 10 * number, 10 * number + 1, number)
        trace.kernel(f"gemm {number}", 10 * number + 2, 10 * number + 4, number, stream=number)
    profile = trace.profile()
    assert leaves(project_tree(profile, kind, fold_numbers=True)) == leaves(
        project_tree(profile, kind)
    )


def test_a_name_that_was_recorded_with_a_star_is_shown_with_those_folded() -> None:
    recorded_so = Launch((), (Name("step *"),), "gemm", 5)
    tree = project_tree(recorded([*steps(9), recorded_so]), "nvtx", fold_numbers=True)
    assert leaves(tree) == {("step *",): 95}


@pytest.mark.parametrize(("captured", "shown"), [(8, 16), (9, 2)])
def test_ranges_of_a_captured_graph_are_not_shown_with_others(captured: int, shown: int) -> None:
    trace = Recorded()
    for number in range(2 * captured):
        start, marked = 10 * number + 10, number % 2
        trace.range(f"step {number}", start, start + 5, captured="yes" if marked else "")
        trace.call("launch", start + 1, start + 2, number + 1)
        trace.kernel("gemm", start + 3, start + 4, number + 1)
    tree = project_tree(trace.profile(), "nvtx", fold_numbers=True)
    assert len(tree.children(0)) == shown


@pytest.mark.parametrize("separator", ["_", "."])
def test_names_of_files_of_stacks_fold(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "steps.folded"
    path.write_text("".join(f"main;step{separator}{n};f{n} {n + 1}\n" for n in range(12)))
    profile = flame.load(path).profile
    tree = project_tree(profile, "stack", fold_numbers=True)
    assert [tree.name(node) for node in range(3)] == ["all", "main", f"step{separator}*"]
    assert len(tree.children(2)) == 12
    assert tree.total[2] == 78
    assert leaves(project_tree(profile, "stack", where=(ShowStacks("^step.3$"),))) == {
        ("main", f"step{separator}3", "f3"): 4
    }


def test_names_of_the_host_fold() -> None:
    trace = Recorded()
    for number in range(9):
        trace.function(f"layer_{number}", 10 * number, 10 * number + 5)
    trace.kernel("gemm", 5, 9)
    tree = project_tree(trace.profile(), "python", metric="host", fold_numbers=True)
    assert leaves(tree) == {("layer_*",): 45}


def test_eight_below_each_of_two_parents_stand_apart() -> None:
    launches = [
        Launch((), (Name(parent), Name("step {}", (n,))), "gemm", 10)
        for n in range(16)
        for parent in [("even", "odd")[n % 2]]
    ]
    tree = project_tree(recorded(launches), "nvtx", fold_numbers=True)
    assert len(leaves(tree)) == 16


@pytest.mark.parametrize(
    ("filter_", "time"),
    [
        (ShowStacks("^step 7$"), 10),
        (HideStacks("^step 7$"), 80),
        (HideFrames("^step 7$"), 90),
        (ShowStacks("^(?!step [0-6])"), 20),
        (HideStacks("^step [^7]$"), 10),
    ],
)
def test_filters_know_numbers_that_are_folded(filter_: StackFilter, time: int) -> None:
    tree = project_tree(recorded(steps(9)), "nvtx", (filter_,), fold_numbers=True)
    assert tree.total[0] == time
    assert names_of(tree) == ["step *"]


def test_filters_know_no_stars() -> None:
    with pytest.raises(NoMatchError):
        project_tree(recorded(steps(9)), "nvtx", (ShowStacks(r"\*"),), fold_numbers=True)


def test_labels_are_worked_out_once_for_each_table_of_stacks() -> None:
    profile, naming = recorded(steps(9)), Naming(numbers=True)
    without_stacks = replace(profile.activities, stacks=StackBuilder().build())
    labels = labels_of(profile, naming, profile.activities)
    assert labels.stars and not labels_of(profile, naming, without_stacks).stars
    assert labels_of(profile, naming, profile.activities) is labels


def test_a_path_is_found_with_folded_numbers_and_without() -> None:
    launches = [
        Launch((), (Name("step {}", (n,)), Name("mm")), "gemm", 10 + n % 5) for n in range(9)
    ]
    profile = recorded(launches)
    folded = project_tree(profile, "nvtx", fold_numbers=True)
    exact = project_tree(profile, "nvtx")
    assert folded.names(folded.find(("step 7", "mm"))) == ("step *", "mm")
    assert exact.names(exact.find(("step *", "mm"))) == ("step 4", "mm")
    assert exact.find(("step 99",)) == 0
