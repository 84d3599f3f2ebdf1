"""What a comparison tells: the deepest frames, both budgets, the findings that changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.compare.basis import Units
from flame.core.compare.changes import Limits, base_as_new, parse_limits
from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.sections.diff_report import SECTIONS, diff_sections
from flame.core.compare.sections.frames import changed_frames
from flame.core.compare.sides import Run, Sides
from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.projection.selection import select
from flame.core.report.table import Table
from flame.reporting.values import cells_by_key
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.paths import SAMPLES
from tests.support.writers.nsysfile import HTOD, NsysFile

Values = dict[str, int]


def folded(folder: Path, base: Values, new: Values) -> Sides:
    """Two runs of the stacks with these values."""
    runs = []
    for name, values in (("base", base), ("new", new)):
        path = folder / f"{name}.folded"
        path.write_text("".join(f"{stack} {value}\n" for stack, value in values.items()))
        runs.append(Run(load(path), name))
    return Sides((runs[0],), (runs[1],))


def told(comparison: Comparison) -> dict[str, list[str]]:
    """The frames of each table, as paths."""
    tree = comparison.union.tree
    found = changed_frames(comparison)._asdict()
    return {
        key: [";".join(tree.names(node)) for node in nodes.tolist()]
        for key, nodes in found.items()
        if len(nodes)
    }


def test_a_change_is_told_of_the_deepest_frame_that_has_most_of_it(tmp_path: Path) -> None:
    base = {"main;a;b;c": 100, "main;a;d": 100, "main;e": 100}
    new = {"main;a;b;c": 150, "main;a;d": 104, "main;e": 100}
    assert told(compare(folded(tmp_path, base, new))) == {"grew": ["main;a;b;c"]}


def test_where_a_change_is_split_its_parent_is_told_first(tmp_path: Path) -> None:
    base = {"main;a;b": 100, "main;a;c": 100, "main;d": 100}
    new = {"main;a;b": 150, "main;a;c": 140, "main;d": 60}
    assert told(compare(folded(tmp_path, base, new))) == {
        "grew": ["main;a", "main;a;b", "main;a;c"],
        "shrank": ["main;d"],
    }


def test_of_what_is_on_one_side_the_outermost_frame_is_told_once(tmp_path: Path) -> None:
    base = {"main;old;x": 60, "main;old;y": 40, "main;kept": 100}
    new = {"main;new;x": 90, "main;kept": 100}
    found = told(compare(folded(tmp_path, base, new)))
    assert found == {"new": ["main;new;x"], "gone": ["main;old"]}


def test_small_changes_do_not_count(tmp_path: Path) -> None:
    base, new = {"a": 1000, "b": 10_000, "c": 10}, {"a": 1049, "b": 10_600, "c": 20}
    assert told(compare(folded(tmp_path, base, new))) == {"grew": ["b"]}
    limits = Limits(0.04, 0)
    assert told(compare(folded(tmp_path, base, new), limits=limits)) == {"grew": ["b", "a", "c"]}


@pytest.mark.parametrize("text", ["", "5%,x", "1,2,3", "-1%", "nan", "inf"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--min-change"):
        parse_limits(text)


def test_the_scaled_base_adds_up(tmp_path: Path) -> None:
    base = dict.fromkeys("abcdefg", 1)
    comparison = compare(folded(tmp_path, base, base), per=Units(3, 4))
    assert sorted(base_as_new(comparison.own_changes).tolist()) == [0, 1, 1, 1, 1, 1, 2, 2]


def rows(table: Table) -> dict[object, dict[str, object]]:
    """The rows of a table by their first cell."""
    return {row[table.columns[0].key]: {**row} for row in cells_by_key(table)}


def check_budget(comparison: Comparison) -> None:
    """The parts are the window on both sides, and the change is theirs."""
    [section] = diff_sections(comparison, ["budget"])
    if not section.available:
        return
    assert section.facts["check"] == [0, 0]
    parts = rows(section.tables[0])
    whole = parts.pop("all")
    for key in ("base_ns", "new_ns", "change_ns"):
        together = sum(float(str(row[key])) for row in parts.values())
        assert together == pytest.approx(float(str(whole[key])), abs=0.01 * len(parts))


def test_the_budget_of_both_sides(tmp_path: Path) -> None:
    runs = []
    for name, length in (("base", 100), ("new", 300)):
        with NsysFile(tmp_path / name) as file:
            file.kernel("gemm", 0, length)
            file.memcpy(HTOD, 500, 700)
        runs.append(Run(load(tmp_path / name), name))
    comparison = compare(Sides((runs[0],), (runs[1],)))
    check_budget(comparison)
    parts = rows(diff_sections(comparison, ["budget"])[0].tables[0])
    values = {key: (row["base_ns"], row["new_ns"]) for key, row in parts.items()}
    assert values == {
        "all": (700, 700),
        "compute": (100, 300),
        "copies, alone": (200, 200),
        "idle: unknown": (400, 200),
    }


def test_every_section_of_a_trace_against_itself_says_that_nothing_changed() -> None:
    profile = load(SAMPLES / "decode_small.sqlite")
    comparison = compare(Sides((Run(profile, "BASE"),), (Run(profile, "NEW"),)), select(fold=True))
    sections = {section.name: section for section in diff_sections(comparison)}
    assert [*sections] == [name for name in SECTIONS if name != "ranks"]
    assert sections["frames"].notes == ("no frame changed beyond noise",)
    assert sections["finding_changes"].notes == ("the same findings on both sides",)
    for row in rows(sections["kernels"].tables[0]).values():
        assert row["change_ns"] == 0


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("base", NSYS_TRACES)
def test_budgets_of_all_pairs_of_real_traces(base: str) -> None:
    profile = load(TRACES / "nsys" / base)
    for new in NSYS_TRACES:
        other = Run(load(TRACES / "nsys" / new), new)
        try:
            comparison = compare(Sides((Run(profile, base),), (other,)), select(fold=True))
        except (UsageError, NoMatchError):
            continue
        check_budget(comparison)
