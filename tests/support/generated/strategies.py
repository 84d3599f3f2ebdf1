"""Random small traces: scripts of calls to `NsysFile`, so that a failing one reads like a test.

Times are small numbers, so that equal starts, touching ends and crossings are common; a script is
then written at some offset (negative, or as large as wall-clock nanoseconds).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.oracles.naive import without_version
from tests.support.writers.nsysfile import MARK, PUSH_POP, START_END, NsysFile

Step = tuple[str, dict[str, Any]]

THREADS = ((100, 100), (100, 101), (101, 101))  # tid 101 in both processes
PROCESSES = (100, 101)
CALL_NAMES = ("cudaLaunchKernel_v7000", "cudaGraphLaunch_v10000", "cuLaunchKernel", "cuMemAlloc_v2")
KERNEL_NAMES = ("gemm", "softmax", "gemm;v2")
DEMANGLED_NAMES = ("void gemm<int>(T1 *)", "void gemm<float>(T1 *)")
RANGE_TEXTS = ("forward", "layer", "attn [1]", "")
DOMAINS = ("NCCL", "layer", "GIL Trace")

correlations = st.sampled_from([1, 2, 3, 1, 2, 3, None, 0])
# Sampling is even: what is named more often is met more often.
threads = st.sampled_from([THREADS[0]] * 4 + [*THREADS])
processes = st.sampled_from([100, 100, 100, 101])
moments = st.one_of(st.integers(0, 3), st.integers(0, 10))
lengths = st.one_of(st.integers(0, 3), st.integers(0, 10))
odd_lengths = st.one_of(lengths, lengths, lengths, lengths, st.just(-2))
long_lengths = st.one_of(st.integers(1, 4), st.integers(3, 12), odd_lengths)


@dataclass(frozen=True)
class Script:
    """What to write: `steps` in `schema`, all times shifted by `offset`.

    With `pids` false kernels do not say of which process they are, as in some trimmed files.
    """

    schema: str
    offset: int
    pids: bool
    steps: tuple[Step, ...]

    def write(self, path: Path) -> Path:
        """Write the trace and return its path.

        It is made in memory: SQLite's waiting for the disk would take twenty times as long.
        """
        file = NsysFile(":memory:", self.schema)
        for method, values in self.steps:
            getattr(file, method)(**self._shifted(values))
        if not self.pids:
            file.create("CUPTI_ACTIVITY_KIND_KERNEL")
            file.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid")
        file.db.commit()
        path.write_bytes(file.db.serialize())
        file.close()
        return path

    def _shifted(self, values: dict[str, Any]) -> dict[str, Any]:
        moved = {
            key: values[key] + self.offset
            for key in ("start", "end")
            if values.get(key) is not None
        }
        return {**values, **moved}


@st.composite
def timed(draw: st.DrawFn, /, method: str, length: st.SearchStrategy[int], **fields: Any) -> Step:
    """A step with a start, an end, and the drawn `fields`."""
    start = draw(moments)
    values = {key: draw(field) for key, field in fields.items()}
    return method, {"start": start, "end": start + draw(length), **values}


def on_gpu(method: str, **fields: Any) -> st.SearchStrategy[Step]:
    """An activity on any device and stream."""
    return timed(
        method,
        odd_lengths,
        device=st.integers(0, 1),
        stream=st.sampled_from([7, 13]),
        **fields,
    )


graph_nodes = st.one_of(st.none(), st.integers(1, 5))
kernels = on_gpu(
    "kernel",
    name=st.sampled_from(KERNEL_NAMES),
    demangled=st.sampled_from(DEMANGLED_NAMES),
    graph_node=graph_nodes,
)
copies = on_gpu("memcpy", kind=st.sampled_from([1, 2, 8, 9, 10, 3]), graph_node=graph_nodes)
sets = on_gpu("memset", graph_node=graph_nodes)
graphs = on_gpu("graph", graph_id=st.integers(1, 2))


@st.composite
def on_thread(draw: st.DrawFn, step: st.SearchStrategy[Step]) -> Step:
    """The step on one of the threads."""
    (method, values), (pid, tid) = draw(step), draw(threads)
    return method, {**values, "pid": pid, "tid": tid}


api_calls = on_thread(
    timed("api", odd_lengths, name=st.sampled_from(CALL_NAMES), corr=correlations)
)
ranges = on_thread(
    timed(
        "nvtx",
        long_lengths,
        text=st.sampled_from(RANGE_TEXTS),
        domain=st.integers(0, 2),
        type=st.sampled_from([PUSH_POP] * 6 + [START_END, MARK]),
        registered=st.booleans(),
    )
)


open_ranges = ranges.map(lambda step: (step[0], {**step[1], "end": None}))
ids = st.tuples(processes, correlations)


def many(steps: st.SearchStrategy[Step], most: int) -> st.SearchStrategy[list[Step]]:
    """Up to `most` steps, or at least half as many (plain lists are mostly short)."""
    return st.one_of(
        st.lists(steps, max_size=most), st.lists(steps, min_size=most // 2, max_size=most)
    )


@st.composite
def launched(draw: st.DrawFn, step: st.SearchStrategy[Step], calls: list[Step]) -> Step:
    """The activity with the process and correlation id of one of `calls`, or of no call."""
    method, values = draw(step)
    known = st.sampled_from([(call["pid"], call["corr"]) for _, call in calls] or [(100, None)])
    pid, correlation = draw(st.one_of(known, known, known, ids))
    return method, {**values, "pid": pid, "corr": correlation}


@st.composite
def clone_steps(draw: st.DrawFn) -> list[Step]:
    """Graph nodes as a capture makes them: node 1 is captured, the others are clones of clones."""
    (pid, tid), start = draw(threads), draw(st.integers(-2, 10))
    where = {"start": start, "pid": pid, "tid": tid}
    originals = {1: None, 2: 1, 3: 2, 4: 3, 5: 4}
    return [
        ("node", {"node_id": node, "original": original, **where})
        for node, original in originals.items()
    ]


@st.composite
def stray_nodes(draw: st.DrawFn) -> Step:
    """Any node; several make cycles, nodes without an original, and conflicting ones."""
    (pid, tid), start = draw(threads), draw(st.integers(-2, 10))
    node, original = draw(st.integers(1, 5)), draw(graph_nodes)
    return "node", {"node_id": node, "original": original, "start": start, "pid": pid, "tid": tid}


@st.composite
def domain_steps(draw: st.DrawFn) -> list[Step]:
    named = draw(st.lists(st.tuples(st.sampled_from(PROCESSES), st.integers(1, 2)), unique=True))
    return [
        ("domain", {"id": id, "pid": pid, "start": 0, "name": draw(st.sampled_from(DOMAINS))})
        for pid, id in named
    ]


@st.composite
def device_steps(draw: st.DrawFn) -> list[Step]:
    """Which GPU each process sees as which CUDA device."""
    seen = draw(st.lists(st.tuples(st.sampled_from(PROCESSES), st.integers(0, 1)), unique=True))
    return [
        ("gpu", {"id": draw(st.integers(0, 2)), "name": "", "cuda_id": cuda, "pid": pid})
        for pid, cuda in seen
    ]


@st.composite
def chain_steps(draw: st.DrawFn, calls: list[Step]) -> list[Step]:
    """Backtraces of some calls, as old exporters write them: on a second row, ids off by one.

    Or as documented, with the plain id. Every chain holds the name of its call.
    """
    shifted = draw(st.booleans())
    keys: set[tuple[int, int]] = set()
    steps: list[Step] = []
    for _, call in calls:
        key = call["pid"], call["corr"]
        if not call["corr"] or key in keys or draw(st.booleans()):
            continue
        keys.add(key)
        name, number = without_version(call["name"]), len(keys)
        row = {**call, "name": name, "event_class": 67, "chain": number - shifted}
        steps.append(("api", {**row, "start": call["start"] - 1, "end": call["end"] + 1}))
        steps.append(("chain", {"id": number, "frames": draw(backtraces(name))}))
    return steps


@st.composite
def backtraces(draw: st.DrawFn, name: str) -> list[tuple[str, str, bool]]:
    """Frames of one chain, leaf first."""
    python = draw(st.lists(st.sampled_from(["[Python] step", "[Python] run"]), max_size=2))
    callers = draw(st.lists(st.sampled_from(["at::matmul", "work"]), max_size=2))
    inside = [("0x7f00", "/usr/lib/libcupti.so", True)]
    return [*inside, *((symbol, "/app", False) for symbol in (name, *callers, *python, "main"))]


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """A whole trace, of two processes with three threads and up to three GPUs."""
    schema = draw(st.sampled_from(["new", "new", "old"]))
    kinds = [kernels, copies, sets, *([graphs] if schema == "new" else [])]
    calls = draw(many(api_calls, 6))
    steps = [
        *draw(domain_steps()),
        *draw(device_steps()),
        *draw(many(launched(st.one_of(*kinds), calls), 8)),
        *calls,
        *draw(chain_steps(calls)),
        *draw(many(st.one_of(ranges, ranges, ranges, open_ranges), 10)),
        *draw(st.one_of(clone_steps(), clone_steps(), many(stray_nodes(), 6))),
    ]
    offset = draw(st.sampled_from([0, -1_000, 1_700_000_000_000_000_000]))
    return Script(schema, offset, draw(st.sampled_from([True, True, False])), tuple(steps))
