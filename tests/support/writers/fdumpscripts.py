"""Random programs that are recorded: threads push and pop ranges, launch, capture and replay."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.support.writers.fdumpfile import API, DOMAIN, DumpFile

Step = tuple[Any, ...]
APIS = {307: "cuLaunchKernel", 514: "cuGraphLaunch", 33: "cuMemcpyHtoDAsync"}
BLOCKING = {17: "cuMemAlloc_v2", 47: "cuStreamSynchronize"}
TIDS = (100, 101)
KERNELS = ("gemm", "softmax")
RANGES = ("step", "layer", "attn", "mlp")
FUNCTIONS = ("main", "train", "forward", "step")
HOST = 0x7FFFFFFF
"""The device of a graph that begins on the host, as CUPTI says it."""


class Program:
    """Runs steps one nanosecond after another and records them as the library does."""

    def __init__(self, file: DumpFile) -> None:
        self.file = file
        self._time = 0
        self._open: dict[int, list[tuple[int, str, int]]] = {tid: [] for tid in TIDS}
        self._correlation = 0
        self._nodes: list[int] = []
        for number, name in (APIS | BLOCKING).items():
            file.name(API, number, name)
        file.name(DOMAIN, 1, "library")

    def _now(self) -> int:
        self._time += 1
        return self._time

    def _path(self, tid: int) -> list[tuple[str, int]]:
        return [(name, domain) for _, name, domain in self._open[tid]]

    def push(self, tid: int, name: str, domain: int) -> None:
        """A range begins."""
        self._open[tid].append((self._now(), name, domain))

    def pop(self, tid: int, domain: int) -> None:
        """The innermost range of a domain ends: others may have begun after it."""
        ranges = self._open[tid]
        for place in reversed(range(len(ranges))):
            if ranges[place][2] == domain:
                path = self._path(tid)[: place + 1]
                start, name, _ = ranges.pop(place)
                known = self.file.range_name(name, domain), self.file.nvtx(*path)
                self._range(tid, start, *known)
                return

    def _range(self, tid: int, start: int, name: int, node: int) -> None:
        times = {"start": self.file.time(start), "end": self.file.time(self._now())}
        self.file.record("range", tid=tid, end_tid=tid, name=name, node=node, **times)

    def launch(self, tid: int, kernel: str, depth: int, cut: bool, recorded: bool) -> None:
        """A kernel; ``recorded``: the call is in the dump too."""
        row = self._call(tid, 307, depth, cut, recorded)
        self.file.kernel(kernel, self._now(), self._now() + depth, stream=7, **row)

    def block(self, tid: int, api: int, depth: int, kernel: str | None) -> None:
        """A call that launches nothing, or a kernel on the way."""
        nvtx, python, start = self.file.nvtx(*self._path(tid)), self._python(depth), self._now()
        if kernel is not None:
            row = self._call(tid, 307, depth, False, True, flags=api << 16)
            self.file.kernel(kernel, self._now(), self._now(), stream=7, **row)
        self.file.call(start, self._now(), tid, api=api, nvtx=nvtx, python=python)

    def copy(self, tid: int, kind: int, copy: int) -> None:
        """A copy or set."""
        row = self._call(tid, 33, 1, False, True)
        self.file.memop(self._now(), self._now(), kind=kind, copy_kind=copy, **row)

    def capture(self, tid: int, depth: int, clones: int) -> None:
        """A node of a graph is made, and cloned some times."""
        node = 10 * (len(self._nodes) + 1)
        row = {"tid": tid, "nvtx": self.file.nvtx(*self._path(tid)), "python": self._python(depth)}
        self.file.graph_node(node, 0, self._now(), **row)
        for _ in range(clones):
            node += 1
            self.file.graph_node(node, node - 1, self._now(), tid=tid)
        self._nodes.append(node)

    def replay(self, tid: int, depth: int) -> None:
        """All nodes so far run once, and one that nobody knows."""
        row = self._call(tid, 514, depth, False, True)
        for node in [*self._nodes, 5]:
            self.file.kernel("node", self._now(), self._now(), graph_node=node, device=1, **row)

    def replay_whole(self, tid: int, depth: int, graph: int, device: int) -> None:
        """A graph runs of which CUPTI tells as a whole."""
        row = self._call(tid, 514, depth, False, True)
        times = {"start": self.file.time(self._now()), "end": self.file.time(self._now())}
        self.file.record("graph_run", graph=graph, device=device, stream=9, **times, **row)

    def _python(self, depth: int, cut: bool = False) -> int:
        places = [(name, f"{name}.py", 1 + at) for at, name in enumerate(FUNCTIONS[:depth])]
        return self.file.python(*places, cut=cut)

    def _call(
        self, tid: int, api: int, depth: int, cut: bool, recorded: bool, flags: int = 0
    ) -> dict[str, int]:
        self._correlation += 1
        nvtx, python = self.file.nvtx(*self._path(tid)), self._python(depth, cut)
        row = {"correlation": self._correlation, "tid": tid, "nvtx": nvtx, "python": python}
        times = self._now(), self._now()
        if recorded:
            self.file.launch(*times, **row, api=api, flags=flags)
        return row

    def end(self) -> DumpFile:
        """What is still open is recorded so."""
        for tid, ranges in self._open.items():
            for place, (start, name, domain) in enumerate(ranges):
                node = self.file.nvtx(*self._path(tid)[: place + 1])
                item = self.file.range_name(name, domain)
                time = self.file.time(start)
                self.file.record("open_range", tid=tid, start=time, name=item, node=node)
        return self.file


tids = st.sampled_from(TIDS)
domains = st.integers(0, 1)
depths = st.integers(0, len(FUNCTIONS))
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("push"), tids, st.sampled_from(RANGES), domains),
    st.tuples(st.just("pop"), tids, domains),
    st.tuples(
        st.just("launch"), tids, st.sampled_from(KERNELS), depths, st.booleans(), st.booleans()
    ),
    st.tuples(
        st.just("block"),
        tids,
        st.sampled_from(tuple(BLOCKING)),
        depths,
        st.sampled_from([None, *KERNELS]),
    ),
    st.tuples(st.just("copy"), tids, st.integers(0, 1), st.sampled_from([1, 2, 8, 3])),
    st.tuples(st.just("capture"), tids, depths, st.integers(0, 2)),
    st.tuples(st.just("replay"), tids, depths),
    st.tuples(
        st.just("replay_whole"), tids, depths, st.integers(1, 2), st.sampled_from([0, 1, HOST])
    ),
)
scripts = st.lists(steps, max_size=30)


def recorded(script: list[Step], file: DumpFile) -> DumpFile:
    """``file`` with what happens in ``script``."""
    program = Program(file)
    for name, *values in script:
        getattr(program, name)(*values)
    return program.end()
