"""Conditions on a report: each quantity as it is counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.report.gate.decide import Decision, as_facts, decide, read_condition
from flame.core.report.gate.quantities import QUANTITIES
from flame.core.report.scope import Scope
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.nsysfile import HTOD, NsysFile


@pytest.fixture
def scope(tmp_path: Path) -> Scope:
    """100 ns: 40 of compute, 10 of communication alone, 20 of a copy alone, 30 idle."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.nvtx("attention", 0, 30)
        file.nvtx("inner attention", 5, 25)
        file.api("cudaMalloc_v3020", 1, 2, corr=9)
        file.api("cudaLaunchKernel_v7000", 10, 12, corr=1)
        file.api("cudaDeviceSynchronize_v3020", 60, 65, corr=8)
        file.kernel("gemm", 20, 60, corr=1)
        file.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 50, 70, corr=None, stream=8)
        file.memcpy(HTOD, 100, 120, corr=None)
    return Scope(load(tmp_path / "trace.sqlite"))


def decided(scope: Scope, text: str) -> Decision:
    return decide(scope, read_condition(text))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("busy", 70),
        ("idle", 30),
        ("compute", 40),
        ("exposed_comm", 10),
        ("copies_alone", 20),
        ("idle_percent", 30.0),
        ("busy_percent", 70.0),
        ("gpu_time", 80),
        ("kernels", 2),
        ("launches", 1),
        ("syncs", 1),
        ("allocs", 1),
        ("findings.high", 0),
        ("step.p50", None),
        ('frame("attention").total', 40),
        ('frame("attention").count', 1),
        ('frame("attention").mean', 40.0),
        ('frame("gemm|nccl").total', 60),
        ('frame("nothing").total', 0),
        ('frame("nothing").mean', None),
        ('frame("gemm|nccl").p99', 40.0),
        ('frame("nothing").p99', None),
        ('phase("communication").total', 20),
        ('phase("prefill").total', None),
        ("peak_memory", None),
    ],
)
def test_quantities(scope: Scope, name: str, value: float | None) -> None:
    unit = "" if "percent" in name or value is None else "ns"
    unit = (
        ""
        if any(word in name for word in ("kernels", "launch", "sync", "alloc", "find", "count"))
        else unit
    )
    limit = "0ns" if value is None else f"{value}{unit}"
    found = decided(scope, f"{name} >= {limit}")
    assert (found.holds, found.values) == (None if value is None else True, {name: value})
    assert list(found.undecided) == ([name] if value is None else [])
    assert value is None or decided(scope, f"{name} > {limit}").holds is False


@pytest.mark.parametrize("name", ["idle", "bytes.dtoh", "kernels", "idle_percent"])
def test_nothing_needs_no_unit(scope: Scope, name: str) -> None:
    assert decided(scope, f"{name} >= 0").holds is True


def test_shares_are_of_the_window(scope: Scope) -> None:
    assert decided(scope, "idle >= 30%").holds is True
    assert decided(scope, "idle > 30%").holds is False
    assert decided(scope, "idle_percent >= 30%").holds is True
    assert decided(scope, 'frame("attention").total >= 50%').holds is True


def test_copies_are_told_by_their_way(scope: Scope) -> None:
    assert decided(scope, "bytes.htod >= 4.096kB").values == {"bytes.htod": 4096}
    assert decided(scope, "bytes.htod > 4.096kB or bytes.dtoh > 0kB").holds is False


def test_copies_of_unknown_size_are_not_decided(tmp_path: Path) -> None:
    file, path = KinetoFile(), tmp_path / "trace.json"
    copy = file.memcpy(0, 20)
    file.write(path)
    assert decided(Scope(load(path)), "bytes.htod > 0kB").holds is True
    args = copy["args"]
    assert isinstance(args, dict)
    del args["bytes"]
    file.write(path)
    assert decided(Scope(load(path)), "bytes.htod > 0kB").holds is None


def test_what_cannot_be_told_is_not_decided(scope: Scope) -> None:
    assert decided(scope, "step.p50 > 1ms").holds is None
    assert decided(scope, "step.p50 > 1ms or idle > 10ns").holds is True
    assert decided(scope, "step.p50 > 1ms and idle > 10us").holds is False


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("step.p50 > 1ms", "no iterations: name a range by --iteration"),
        ("peak_memory > 1GB", "the trace does not have how much memory was in use"),
        ("memory.peak > 1GB", "no memory snapshot, or one that does not tell"),
        ('frame("nothing").mean > 1ns', "no frame has such a name"),
        (
            'phase("prefill").total > 1ns',
            "no phase is called so; there are matrix product, communication, copy, elementwise, "
            "normalisation and reduction, attention, other, indexing and sorting",
        ),
    ],
)
def test_why_it_cannot_be_decided(scope: Scope, text: str, why: str) -> None:
    assert list(decided(scope, text).undecided.values()) == [why]


def test_phases_are_those_that_ranges_tell(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        for number, name in enumerate(["prefill", "decode", "decode", "other"]):
            begin = 100 * number
            file.nvtx(name, begin, begin + 90)
            file.api("cudaLaunchKernel_v7000", begin + 10, begin + 12, corr=number + 1)
            file.kernel("gemm", begin + 20, begin + 50, corr=number + 1)
    served = Scope(load(tmp_path / "trace.sqlite"))
    for name, value in (("prefill", 30), ("decode", 60), ("unmapped", 30), ("mixed", 0)):
        assert decided(served, f'phase("{name}").total >= 0%').values == {
            f'phase("{name}").total': value
        }
    assert decided(served, 'phase("decode").total >= 50%').holds is True
    assert decided(served, 'phase("decode").total > 50%').holds is False
    [why] = decided(served, 'phase("decoding").total > 5%').undecided.values()
    assert why == "no phase is called so; there are prefill, decode, unmapped, mixed"


def test_memory_at_its_peak(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 20, 60, corr=None)
        file.memory(10, 1 << 20, 0x1000)
        file.memory(20, 3 << 20, 0x2000)
        file.memory(30, 1 << 20, 0x1000, frees=True)
    scope = Scope(load(tmp_path / "trace.sqlite"))
    assert decided(scope, "peak_memory > 4MB").values == {"peak_memory": 4 << 20}


def test_stacks_cannot_tell_anything(tmp_path: Path) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text("main;work 3\n")
    scope = Scope(load(path))
    for name in QUANTITIES:
        assert decided(scope, f"{name} > 0ns").holds is None, name
    assert decided(scope, 'frame("main").total > 0ns').holds is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("speed > 3", "no quantity 'speed' (at 1); there are busy, idle"),
        ('idle > 3ns and frames("a").total > 3', "no quantity 'frames.total' (at 16)"),
        ('frame("a").p50 > 3', 'frame("RE").p99, phase("NAME").total'),
        ('phase("a").mean > 3', "no quantity 'phase.mean'"),
        ('frame("(").total > 3', "frame.total at 1: not a regular expression"),
        ("idle > +5%", "a report has no base"),
    ],
)
def test_what_there_is_not_is_told_before_the_trace_is_read(text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        read_condition(text)
    assert says in str(error.value)


@pytest.mark.parametrize(
    "text", ["idle > 3", "idle > 0kB", "kernels > 3ms", "kernels > 3%", "idle > 2GB"]
)
def test_another_unit_is_refused(scope: Scope, text: str) -> None:
    with pytest.raises(UsageError, match="at 1 is compared with"):
        decided(scope, text)


def test_what_a_script_reads(scope: Scope) -> None:
    text = "idle > 10ns and kernels < 3"
    facts = as_facts(text, decided(scope, text))
    assert facts == {
        "flame_report": 1,
        "condition": text,
        "result": True,
        "undecided": {},
        "values": {"idle": 30, "kernels": 2},
    }
