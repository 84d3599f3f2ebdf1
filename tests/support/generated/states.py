"""Random traces with garbage collections and the GIL, and what their rows say of these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from hypothesis import strategies as st

from flame.core.model.calls import IdleCause
from flame.core.model.profile import Profile
from tests.support.generated.strategies import Script, Step, scripts
from tests.support.oracles.naive import Record, Trace, capture_end, nvtx_text, pid_of
from tests.support.writers.nsysfile import PUSH_POP, START_END, gtid

Span = tuple[int, int]
StateSpans = Mapping[tuple[str, int], list[Span]]
"""When threads (globalTid) were in each state."""

NO_STATES: StateSpans = {}

HOLDING, WAITING, GC = "Holding GIL", "Waiting for GIL", "Python GC"


def with_states(script: Script) -> Script:
    """The script with domain 1 of process 100 that of the GIL, and start/end ranges collections."""
    steps: list[Step] = [("domain", {"id": 1, "pid": 100, "start": 0, "name": "GIL Trace"})]
    for number, (method, values) in enumerate(script.steps):
        if method == "domain":
            continue
        if method == "nvtx":
            text = GC if values["type"] == START_END else (WAITING, HOLDING)[number % 2]
            values = {**values, "text": text}
        steps.append((method, values))
    return replace(script, steps=tuple(steps))


spans_ = st.builds(lambda low, length: (low, low + length), st.integers(0, 60), st.integers(0, 15))
states_ = st.lists(st.tuples(st.sampled_from([GC, WAITING, HOLDING]), spans_, st.integers(99, 101)))


@st.composite
def held_up(draw: st.DrawFn) -> Script:
    """Kernels with time between them, launched by two of three threads that were in states."""
    steps: list[Step] = [("domain", {"id": 1, "pid": 100, "start": 0, "name": "GIL Trace"})]
    lengths = draw(st.lists(st.integers(1, 12), min_size=2, max_size=6))
    for number, at in enumerate(accumulate(lengths)):
        call = {"name": "cudaLaunchKernel_v7000", "start": 2 * at, "end": 2 * at + 1}
        who = {"pid": 100, "tid": 100 + number % 2}
        steps.append(("api", {**call, **who, "corr": number + 1}))
        kernel = {"name": "gemm", "start": 2 * at + 1, "end": 2 * at + 2, "corr": number + 1}
        steps.append(("kernel", kernel))
    for text, (start, end), tid in draw(states_):
        kind = {"type": START_END} if text == GC else {"domain": 1}
        row = {"text": text, "start": start, "end": end, "pid": 100, "tid": tid}
        steps.append(("nvtx", {**row, **kind}))
    return Script("new", draw(st.sampled_from([0, -1_000])), pids=True, steps=tuple(steps))


def held_up_scripts() -> st.SearchStrategy[Script]:
    """Any traces whose threads were in states."""
    return st.one_of(held_up(), scripts().map(with_states))


# What the rows say


def state_spans(path: Path) -> StateSpans:
    """When threads were in each state, row by row."""
    trace, found = Trace(path), defaultdict(list)
    last = capture_end(trace)
    for row in trace.rows("NVTX_EVENTS"):
        state = _state_of(row, nvtx_text(trace, row))
        if state is not None:
            end = last if row["end"] is None else row["end"]
            found[state, row["globalTid"]].append((row["start"], end))
    return found


def _state_of(row: Record, text: str) -> str | None:
    """The state that a row tells of, if any."""
    if row["eventType"] not in (PUSH_POP, START_END):
        return None
    of_gil = row["domainId"] == 1 and pid_of(row["globalTid"]) == 100
    return text if of_gil == (text != GC) else None


def covered(spans: Iterable[Span], low: int, high: int) -> set[int]:
    """The moments from ``low`` until ``high`` at which any of the spans is open."""
    return {at for at in range(low, high) if any(one <= at < other for one, other in spans)}


def in_no_call(profile: Profile, spans: StateSpans, thread: int, moment: int) -> IdleCause:
    """What a thread of ``profile`` that was in no call was at."""
    one = profile.threads[thread]
    key = gtid(profile.processes[one.process].pid, one.tid)
    for state, cause in ((GC, IdleCause.GARBAGE_COLLECTION), (WAITING, IdleCause.GIL)):
        if any(low <= moment < high for low, high in spans.get((state, key), ())):
            return cause
    return IdleCause.HOST_CODE
