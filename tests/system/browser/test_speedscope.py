"""Exports in the real speedscope: what its page shows is what the tree holds.

speedscope and a headless Chromium come as npm packages; see `tests.system.browser.chromium`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from flame.core.compare.comparison import compare
from flame.core.compare.sides import SIDES, Sides, runs_of
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.exporters import folded, pprof, speedscope
from flame.exporters.speedscope_format import EventedProfile, OpenFrameEvent, SpeedscopeFile
from flame.reporting.diff_files import write_speedscope
from tests.exporters.profiles import HOSTILE, Row, chain, profile_of
from tests.support.paths import SAMPLES
from tests.support.profiles.project_tree import project_tree
from tests.system.browser.chromium import asking

pytestmark = pytest.mark.deep

HERE = Path(__file__).parent
SAMPLE = SAMPLES / "decode_small.sqlite"
Place = tuple[str, str, int]
"""A frame as exports tell frames apart: name, file, line (0: none)."""
Stacks = dict[tuple[Place, ...], int]

View = Callable[[Path], dict[str, Any]]


@pytest.fixture(scope="module")
def view(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    """Shows a file in speedscope; see view.mjs for what comes back."""
    log = tmp_path_factory.mktemp("view") / "stderr"
    with asking(HERE / "view.mjs", packages, log) as ask:
        yield lambda profile: ask(str(profile))


def held(tree: StackTree) -> Stacks:
    """Own value by stack, asked of the tree node by node."""
    stacks: Counter[tuple[Place, ...]] = Counter()
    for node in range(len(tree)):
        frames = (int(tree.frame[step]) for step in tree.path(node)[1:])
        stacks[tuple(place(tree, frame) for frame in frames)] += int(tree.own[node])
    return {stack: value for stack, value in stacks.items() if value}


def place(tree: StackTree, frame: int) -> Place:
    known = tree.frames[frame]
    if known.kind == Kind.PYTHON and known.file:
        return tree.text[frame], known.file, known.line
    return tree.text[frame], known.kind.title, 0


def loaded(page: dict[str, Any]) -> Iterator[tuple[EventedProfile, Stacks]]:
    """What speedscope saves again of each profile: every frame opened and closed."""
    file = msgspec.convert(page["saved"], SpeedscopeFile)
    places = [(one.name, one.file or "", one.line or 0) for one in file.shared.frames]
    for profile in file.profiles:
        assert isinstance(profile, EventedProfile)
        yield profile, own_values(profile, places)


def own_values(profile: EventedProfile, places: list[Place]) -> Stacks:
    stacks: Counter[tuple[Place, ...]] = Counter()
    stack: list[Place] = []
    now = 0.0
    for event in profile.events:
        stacks[tuple(stack)] += int(event.at - now)
        now = event.at
        if isinstance(event, OpenFrameEvent):
            stack.append(places[event.frame])
        else:
            assert stack.pop() == places[event.frame]
    stacks[()] += int(profile.end_value - now)
    return {path: value for path, value in stacks.items() if value}


def sandwich(stacks: Stacks, unit: str) -> list[dict[str, str]]:
    """The rows of the Sandwich table, largest total first; recursion counts once."""
    total: defaultdict[Place, int] = defaultdict(int)
    own: defaultdict[Place, int] = defaultdict(int)
    for stack, value in stacks.items():
        for one in set(stack):
            total[one] += value
        if stack:
            own[stack[-1]] += value
    order = sorted(total, key=lambda one: -total[one])
    return [row(one, shown(total[one], unit), shown(own[one], unit)) for one in order]


def row(one: Place, total: str, own: str) -> dict[str, str]:
    return {"name": one[0], "file": one[1], "total": total, "self": own}


def shown(value: int, unit: str) -> str:
    """A value as speedscope writes it, to the last rounding of a double."""
    if unit == "none":
        return f"{value:,}"
    seconds = value * 1e-9
    if seconds >= 60:
        return f"{int(seconds // 60)}:{int(seconds % 60):02}"
    scale, name = next(step for step in SCALES if seconds / step[0] >= 1 or step[0] == 1e-9)
    return f"{Decimal(seconds / scale).quantize(Decimal('0.01'), ROUND_HALF_UP)}{name}"


SCALES = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def without_percent(found: dict[str, str]) -> dict[str, str]:
    return {key: re.sub(r" \([<>]?[\d.]+%\)$", "", text) for key, text in found.items()}


def export(profile: Profile, selection: Selection, folder: Path) -> Path:
    path = folder / "trace.speedscope.json"
    with path.open("wb") as file:
        assert speedscope.write(profile, selection, file, name="trace.sqlite") == []
    return path


def assert_shows(
    page: dict[str, Any], trees: list[StackTree], names: Sequence[str] | None = None
) -> None:
    """Every profile of the page holds the stacks of its tree, and its table shows their totals.

    They are called after the metrics unless ``names`` are given.
    """
    names = names or [tree.metric.title for tree in trees]
    assert "problem" not in page, page["problem"]
    count = len(trees)
    for index, (tree, (profile, stacks)) in enumerate(zip(trees, loaded(page), strict=True)):
        assert stacks == held(tree)
        assert profile.end_value == tree.total[0]
        name = names[index]
        tab = page["tabs"][index]
        assert profile.name == name
        assert tab["name"] == (f"{name} ({index + 1}/{count})" if count > 1 else name)
        assert_table([without_percent(row) for row in tab["rows"]], sandwich(stacks, profile.unit))


def assert_table(rows: list[dict[str, str]], expected: list[dict[str, str]]) -> None:
    """``rows`` is the beginning of ``expected``; rows of the same total may stand in any order."""
    assert len(rows) >= min(len(expected), 20)
    assert [row["total"] for row in rows] == [row["total"] for row in expected][: len(rows)]
    assert all(row in expected for row in rows)


def trees_of(profile: Profile, *metrics: str) -> list[StackTree]:
    return [project(profile, Selection(metric=metric)) for metric in metrics]


def test_the_sample_with_all_its_metrics(view: View, tmp_path: Path) -> None:
    profile = load(SAMPLE)
    page = view(export(profile, Selection(), tmp_path))
    assert page["title"] == "trace.sqlite - speedscope"
    assert_shows(page, trees_of(profile, "gpu", "count", "launch", "queue", "idle"))


def test_host_time(view: View, tmp_path: Path) -> None:
    profile = load(SAMPLE)
    page = view(export(profile, Selection(metric="host"), tmp_path))
    assert_shows(page, trees_of(profile, "host"))


@pytest.mark.parametrize("trace", ["rtx3070_train_17k.sqlite", "cuda_backtraces_mpi.sqlite"])
def test_real_traces(
    trace: str, nsys_trace: Callable[[str], Path], view: View, tmp_path: Path
) -> None:
    profile = load(nsys_trace(trace))
    page = view(export(profile, Selection(metric="gpu"), tmp_path))
    metrics = [metric.key for metric in METRICS if metric.table == "gpu"]
    assert_shows(page, [tree for tree in trees_of(profile, *metrics) if tree.total[0]])


def test_hostile_names_and_own_values_everywhere(view: View, tmp_path: Path) -> None:
    names = ("", " ", "</script>", '"\\', HOSTILE.encode("utf-8", "replace").decode(), "🔥", "a")
    python = (("run", "app.py", 1), ("run", "app.py", 2), ("run", "", 0))
    rows = [Row(name, 10 + i, nvtx=names[:i], python=python) for i, name in enumerate(names)]
    profile = profile_of([*rows, Row("", 99, launch="")])
    page = view(export(profile, Selection(), tmp_path))
    assert_shows(page, trees_of(profile, "gpu", "count"))


def test_a_profile_of_nothing(view: View, tmp_path: Path) -> None:
    page = view(export(profile_of([]), Selection(metric="gpu"), tmp_path))
    assert_shows(page, trees_of(profile_of([]), "gpu"))


def test_stacks_as_deep_as_is_not_warned_about(view: View, tmp_path: Path) -> None:
    tree = chain(speedscope.DEPTH_LIMIT)
    with (tmp_path / "deep.json").open("wb") as file:
        assert speedscope.write_tree(tree, file, "deep") == []
    assert_shows(view(tmp_path / "deep.json"), [tree])


def test_a_broken_file_is_seen_as_broken(view: View, tmp_path: Path) -> None:
    path = export(profile_of([Row("gemm", 1)]), Selection(), tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"weights":[1]', b'"weights":[]'))
    assert view(path) == {"problem": "Something went wrong"}


def test_folded_stacks(view: View, tmp_path: Path) -> None:
    rows = [Row("gemm 7", 5, nvtx=("", HOSTILE)), Row("", 2, launch=""), Row("a;b", 3)]
    path = tmp_path / "trace.collapsedstack.txt"
    with path.open("wb") as file:
        folded.write(project_tree(profile_of(rows), metric="gpu"), file)
    page = view(path)
    [(profile, stacks)] = loaded(page)
    lines = path.read_text("utf-8").split("\n")[:-1]
    found = {";".join(name for name, _, _ in stack): value for stack, value in stacks.items()}
    assert found == {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
    assert profile.end_value == 10


def test_pprof_profiles(view: View, tmp_path: Path) -> None:
    python = (("run", "app.py", 3), ("step", "", 0))
    rows = [Row("gemm", 5, nvtx=("forward",), python=python), Row("gemm", 7), Row("</b>", 2)]
    selection = Selection(("python", "nvtx", "kernel"), metric="gpu")
    path, profile = tmp_path / "trace.pb.gz", profile_of(rows)
    tree = project(profile, selection)
    with path.open("wb") as file:
        pprof.write(profile, selection, file, name="x", first=tree)
    [(shown, stacks)] = loaded(view(path))
    assert {tuple(name for name, _, _ in stack): value for stack, value in stacks.items()} == {
        tuple(name for name, _, _ in stack): value for stack, value in held(tree).items()
    }
    assert (shown.unit, shown.end_value) == ("nanoseconds", 14)


def test_the_format_is_the_published_one(packages: Path) -> None:
    site = packages / "node_modules" / "speedscope" / "dist" / "release"
    published = json.loads((site / "file-format-schema.json").read_bytes())["definitions"]
    [_], ours = msgspec.json.schema_components([SpeedscopeFile], ref_template="{name}")
    names = {"SpeedscopeFile": "FileFormat.File", "SpeedscopeFrame": "FileFormat.Frame"}
    names |= {name: f"FileFormat.{name}" for name in ("SampledProfile", "EventedProfile")}
    names |= {name: name for name in ("OpenFrameEvent", "CloseFrameEvent")}
    assert {*names, "SharedFrames"} == ours.keys()
    for name, known in names.items():
        assert ours[name]["properties"].keys() == published[known]["properties"].keys()
        assert sorted(ours[name]["required"]) == sorted(published[known]["required"])


def test_both_sides_of_a_comparison_are_shown(view: View, tmp_path: Path) -> None:
    profiles = [load(SAMPLE), load(SAMPLES / "six_levels" / "tiny_llm.fdump")]
    base, new = (runs_of(side, [one]) for side, one in zip(SIDES, profiles, strict=True))
    comparison = compare(Sides(base, new), Selection(metric="gpu"), "total")
    path = tmp_path / "diff.speedscope.json"
    with path.open("wb") as file:
        assert write_speedscope(comparison, file, "BASE → NEW") == []
    page = view(path)
    changes, tree = comparison.own_changes, comparison.union.tree
    change = changes.new.total - changes.base.total
    sides = (changes.new.total, changes.base.total, np.maximum(change, 0), np.maximum(-change, 0))
    names = ("new", "base", "grew", "shrank")
    assert_shows(page, [replace(tree, own=own) for own in sides], names)
