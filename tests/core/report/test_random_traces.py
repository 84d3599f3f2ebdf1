"""Sections of random traces: each can be written, adds up, and does not depend on when it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.names.phases import parse_phases
from flame.core.options import LoadOptions
from flame.core.projection.filters import Devices, Filter, Kernel, Pids, Time
from flame.core.projection.phases import name_phases
from flame.core.projection.selection import select
from flame.core.report.options import with_iteration
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from flame.core.report.table import Section
from flame.reporting.html import as_html
from flame.reporting.markdown import as_markdown
from flame.reporting.report_json import as_json
from flame.reporting.text import as_text
from tests.support.generated.strategies import RANGE_TEXTS, Script, scripts
from tests.support.tiers import examples

PROGRAM = ("phases", "layers", "experts", "iterations")
PARTIES = ("communication", "processes", "devices", "threads", "ranks")
PHASES = parse_phases('{"one": ["gemm"], "two": ["layer"]}')

filters = st.one_of(
    st.builds(lambda low, length: Time(low, low + length), st.integers(-2, 8), st.integers(1, 12)),
    st.sampled_from([Devices((0,)), Pids((100,)), Kernel("gemm")]),
)


def sections(path: Path, script: Script, where: tuple[Filter, ...]) -> list[Section] | None:
    """All sections, with ranges `forward` as iterations where there are any; None: nothing fits."""
    profile = load(script.write(path), LoadOptions("raw"))
    names = {frame.name for frame in profile.frames.frames}
    if RANGE_TEXTS[0] in names and profile.ranges is not None and len(profile.ranges):
        chosen = [at for at in profile.ranges.frame if profile.frames[at].name == RANGE_TEXTS[0]]
        profile = with_iteration(profile, "^forward$") if chosen else profile
    try:
        found = Report(Scope(name_phases(profile, PHASES), select(where=where)))
        return found.sections((*PROGRAM, *PARTIES))
    except NoMatchError:
        return None


@examples(2, [HealthCheck.too_slow])
@given(scripts(), st.lists(filters, max_size=2))
def test_all_sections_can_be_written(trace_file: Path, script: Script, where: list[Filter]) -> None:
    found = sections(trace_file, replace(script, offset=0), tuple(where))
    if found is None:
        assert where
        return
    for section in found:
        for table in section.tables:
            assert all(len(row) == len(table.columns) for row in table.rows)
            assert not table.places or len(table.places) == len(table.rows)
        if section.name == "phases" and section.available:
            check_phases(section)
    assert json.loads(as_json(found, 10, lambda place: None, {}))
    assert as_text(found, 80, 5)
    assert as_markdown(found, 5)
    assert as_html(found, 5, lambda place: None, title="t", icicle="").endswith("</html>\n")


def check_phases(section: Section) -> None:
    [table] = section.tables
    keys = [column.key for column in table.columns]
    shares = [row[keys.index("percent")] for row in table.rows] if "percent" in keys else []
    known = [float(share) for share in shares if share is not None]
    assert not known or abs(sum(known) - 100) < 0.01


@examples(1, [HealthCheck.too_slow])
@given(scripts(), st.integers(1, 10_000))
def test_nothing_but_moments_depends_on_when_it_was(
    trace_file: Path, script: Script, later: int
) -> None:
    # A graph that began and ended at 0 is one without times: there are none of these here.
    steps = tuple(step for step in script.steps if step[0] != "graph")
    told = [
        sections(trace_file, replace(script, offset=offset, steps=steps), ())
        for offset in (1_000, 1_000 + later)
    ]
    assert told[0] is not None
    assert told[1] is not None
    for one, other in zip(*told, strict=True):
        assert one.why == other.why
        for table, same in zip(one.tables, other.tables, strict=True):
            keys = [column.key for column in table.columns]
            assert keys == [column.key for column in same.columns]
            kept = [at for at, key in enumerate(keys) if key != "start_ns"]
            rows = [tuple(row[at] for at in kept) for row in table.rows]
            assert rows == [tuple(row[at] for at in kept) for row in same.rows], table.key
