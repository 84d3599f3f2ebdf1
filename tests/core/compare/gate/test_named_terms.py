"""Conditions on what has a name: percentiles of frames, phases, and what steps tell of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.gate.decide import DiffDecision, as_facts, decide
from flame.core.compare.gate.terms import read_condition
from flame.core.compare.keep import keep_run
from flame.core.compare.kept.base_file import encode_base, read_base
from flame.core.compare.sides import KeptRun, Run, Sides, open_runs
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.selection import select
from tests.support.writers.nsysfile import NsysFile

LONG = 1_000_000


def trace(path: Path, durations: Sequence[int], ranges: Sequence[str] = ("attention",)) -> Run:
    """A kernel of each length, those of all ``ranges`` by turns; steps are of 10 ms."""
    with NsysFile(path) as file:
        for number, duration in enumerate(durations):
            begin, name = number * 10 * LONG, ranges[number % len(ranges)]
            file.nvtx(name.replace("#", str(number)), begin, begin + 9 * LONG)
            file.api("cudaLaunchKernel_v7000", begin + 10, begin + 20, number + 1)
            file.kernel("gemm", begin + 30, begin + 30 + duration, number + 1)
    return Run(load(path), path.stem)


def kept(run: Run, path: Path, phases: str | None = None) -> Run:
    path.write_bytes(encode_base([keep_run(run, select())]))
    [found] = open_runs(path, run.label, (), phases)
    return found


def decided(base: Run, new: Run, text: str) -> tuple[Comparison, DiffDecision]:
    comparison = compare(Sides((base,), (new,)))
    return comparison, decide(comparison, read_condition(text), 2.0)


def slow_tail(every: int, number: int = 1_200) -> list[int]:
    """Lengths of 1 ms, and of 3 ms ``every`` so many."""
    return [3 * LONG if at % every == 5 else LONG + at for at in range(number)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run, Run]:
    """A base, the base as it was kept, and a new side where one in 40 is slow, not one in 400."""
    folder = tmp_path_factory.mktemp("tails")
    base, new = trace(folder / "BASE", slow_tail(400)), trace(folder / "NEW", slow_tail(40))
    return base, kept(base, folder / "kept"), new


@pytest.mark.parametrize("of_kept", [False, True])
@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('frame("gemm").p99 > +50%', True),
        ('frame("gemm").p99 > +1ms', True),
        ('frame("gemm").p99 > +201%', None),  # 199.6 %, and two runs may differ
        ('frame("gemm").p99 > +250%', False),
        ('frame("gemm").p99 > 2900us', True),
        ('frame("gemm").mean > +9%', False),
        ('frame("none").p99 > +9%', None),
    ],
)
def test_a_tail_that_grew(
    runs: tuple[Run, Run, Run], text: str, holds: bool | None, of_kept: bool
) -> None:
    assert decided(runs[of_kept], runs[2], text)[1].holds is holds


def test_slow_activities_that_differ_are_not_enough(tmp_path: Path) -> None:
    """Of a tail from 3 to 9 ms the hundredth part is known badly."""
    lengths = [LONG * (3 + at % 7) if at % 66 == 5 else LONG for at in range(1_200)]
    base, new = (trace(tmp_path / name, lengths) for name in ("BASE", "NEW"))
    [undecided] = decided(base, new, 'frame("gemm").p99 > +5%')[1].undecided
    assert undecided.why.startswith("1,200 activities tell it to ± ")


def test_kept_durations_are_off_by_less_than_a_percent(runs: tuple[Run, Run, Run]) -> None:
    text = 'frame("gemm").p99 > +50%'
    values = [decided(base, runs[2], text)[1].terms[0].values for base in runs[:2]]
    assert values[0] is not None and values[1] is not None
    assert values[1].base == pytest.approx(values[0].base, rel=0.005)
    assert values[1].new == values[0].new == 3 * LONG


def test_few_activities_have_no_percentile_that_is_known(tmp_path: Path) -> None:
    base, new = (trace(tmp_path / name, slow_tail(40, 200)) for name in ("BASE", "NEW"))
    for one in (base, kept(base, tmp_path / "kept")):
        text = 'frame("gemm").p99 > +5%'
        comparison, decision = decided(one, new, text)
        [undecided] = decision.undecided
        assert undecided.why == (
            "200 activities are too few for this percentile: 381 of each side are needed"
        )
        facts = json.dumps(as_facts(text, comparison, decision), allow_nan=False)
        assert json.loads(facts)["values"]['frame("gemm").p99']["interval_percent"] is None
    assert decided(base, new, 'frame("gemm").p99 > 2ms')[1].holds is True


def test_bases_of_an_older_flame_have_no_durations(
    runs: tuple[Run, Run, Run], tmp_path: Path
) -> None:
    data = read_base_of(runs[0], tmp_path)
    older = replace_durations(data)
    [undecided] = decided(older, runs[2], 'frame("gemm").p99 > +5%')[1].undecided
    assert undecided.why == (
        "BASE: an older flame kept the base, without how long activities took: keep it again"
    )
    [undecided] = decided(older, runs[2], "peak_memory > +5%")[1].undecided
    assert undecided.why.startswith("BASE: the base was kept without it: its trace does not tell")


def read_base_of(run: Run, folder: Path) -> KeptRun:
    found = kept(run, folder / "base")
    assert isinstance(found, KeptRun)
    assert len(read_base(folder / "base").runs) == 1
    return found


def replace_durations(run: KeptRun) -> KeptRun:
    part = msgspec.structs.replace(run.part, durations=None)
    return replace(run, part=part, data=msgspec.structs.replace(run.data, whole=part))


SERVED = ("prefill", "decode", "decode", "decode")


@pytest.mark.parametrize("of_kept", [False, True])
def test_phases_are_compared(tmp_path: Path, of_kept: bool) -> None:
    base = trace(tmp_path / "BASE", [LONG] * 40, SERVED)
    lengths = [LONG if at % 4 == 0 else LONG + LONG // 5 for at in range(40)]
    new = trace(tmp_path / "NEW", lengths, SERVED)
    base = kept(base, tmp_path / "kept") if of_kept else base
    for text, holds in (
        ('phase("decode").total > +10%', True),
        ('phase("prefill").total > +10%', False),
        ('phase("decode").total > 70%', True),
        ('phase("mixed").total > +0ns', False),
        ('phase("prefilled").total > +10%', None),
    ):
        _, decision = decided(base, new, text)
        assert decision.holds is holds, text
    [undecided] = decision.undecided
    assert undecided.why == "no phase is called so; there are prefill, decode, unmapped, mixed"


@pytest.mark.parametrize("of_kept", [False, True])
def test_phases_that_a_user_names_are_compared(tmp_path: Path, of_kept: bool) -> None:
    file = tmp_path / "phases.json"
    file.write_text('{"begin": ["prefill"], "go on": ["kernel:gemm"]}')
    runs = []
    for name, length in (("BASE", LONG), ("NEW", 2 * LONG)):
        trace(tmp_path / name, [LONG, length, length, length], SERVED)
        runs.append(Run(load(tmp_path / name, LoadOptions(phases=str(file))), name))
    base = kept(runs[0], tmp_path / "kept", str(file)) if of_kept else runs[0]
    text = 'phase("go on").total > +90% and phase("begin").total < +10%'
    assert decided(base, runs[1], text)[1].holds is True


@pytest.mark.parametrize("of_kept", [False, True])
@pytest.mark.parametrize("name", ["gpu_time", 'frame("gemm").total', 'frame("gemm").mean'])
def test_steps_tell_how_sure_sums_are(tmp_path: Path, name: str, of_kept: bool) -> None:
    """The sums are alike, and steps are not: which is no wonder, and no proof of anything."""
    wild = [LONG // 2, 3 * LONG, LONG, 2 * LONG, LONG // 4, 4 * LONG]
    base = trace(tmp_path / "BASE", wild * 2, ["step #"])
    new = trace(tmp_path / "NEW", [*wild[3:], *wild[:3]] * 2, ["step #"])
    base = kept(base, tmp_path / "kept") if of_kept else base
    comparison, decision = decided(base, new, f"{name} > +5%")
    assert comparison.basis.kind == "step"
    [undecided] = decision.undecided
    assert undecided.why.startswith("record more: ")
    assert decided(base, new, f"{name} > +500%")[1].holds is False
    same = trace(tmp_path / "SAME", wild * 2, ["step #"])
    assert decided(base, same, f"{name} > +5%")[1].holds is False, "steps do the same in turn"
