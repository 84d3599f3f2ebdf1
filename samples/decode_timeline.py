"""Plays a mixture-of-experts decode on one thread and one GPU, and notes what a profiler records.

Everything follows from a fixed seed: a linear congruential generator of its own, because the
sequences of `random` may change with the Python version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from samples.moe_model import KERNELS, LAYERS, MODEL, Module, model
from samples.nsys_schema import DOMAIN_CREATE, DTOH, HTOD, PUSH_POP, gtid

COMPUTE_STREAM, NCCL_STREAM = 7, 20
NCCL_DOMAIN = 1
GRAPH_ID, GRAPH_EXEC_ID = 1, 3
COPIES = {"HtoD": HTOD, "DtoH": DTOH}
GRAPH_BATCH = 16
FIRST_CORRELATION = 100
SLOW_LAYER = 17
MEMSET_NS = 1_300
UNMAPPED = "add"
DEEP_LAYERS = tuple(f"{MODEL}.model.layers.{n}." for n in range(LAYERS // 2, LAYERS))

Path = tuple[str, ...]


def _api(key: str) -> str:
    return "cudaMemsetAsync_v3020" if key == "memset" else KERNELS[key].api


def _bytes(key: str) -> int:
    return 4096 if key == "memset" else 0


def _mean_ns(key: str, prefill: bool) -> int:
    if key == "memset":
        return MEMSET_NS
    return KERNELS[key].prefill_ns if prefill else KERNELS[key].decode_ns


@dataclass(frozen=True)
class Activity:
    """One thing that ran on the GPU. `key` names a kernel, "memset", or a memcpy's direction."""

    key: str
    start: int
    end: int
    stream: int
    correlation: int
    node: int | None = None
    bytes: int = 0


@dataclass
class Range:
    """One NVTX event; `text_registered` says that the text is stored by string id."""

    start: int
    text: str
    kind: int = PUSH_POP
    end: int | None = None
    domain: int = 0
    text_registered: bool = False
    id: int | None = None
    thread: int = 0
    end_thread: int | None = None


@dataclass(frozen=True)
class Call:
    """One CUDA API call; `chain` is a key of `KERNELS` whose backtrace was taken, or None."""

    name: str
    start: int
    end: int
    correlation: int
    thread: int
    chain: str | None = None


@dataclass(frozen=True)
class Node:
    """One CUDA graph node: captured (`original` None) or cloned."""

    id: int
    original: int | None
    start: int


@dataclass(frozen=True)
class Step:
    """One engine step: `context` requests prefill `context_tokens`, `generation` ones decode."""

    context: int
    context_tokens: int
    generation: int
    slow: bool = False

    @property
    def text(self) -> str:
        """The name of the step's NVTX range."""
        generation = f"generation_{self.generation}({self.generation})"
        return f"execute_context_{self.context}({self.context_tokens})_{generation}"


@dataclass
class Rank:
    """One process with one GPU: its records, its clocks (ns), and the truth about its GPU time.

    `truth` maps the path of range texts that each activity belongs to, outer to inner, to GPU ns.
    """

    index: int
    pid: int
    now: int
    activities: list[Activity] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    graph: list[tuple[str, int, Path]] = field(default_factory=list)
    truth: Counter[Path] = field(default_factory=Counter)
    _open: list[str] = field(default_factory=list)
    _free: dict[int, int] = field(default_factory=lambda: {COMPUTE_STREAM: 0, NCCL_STREAM: 0})
    _correlation: int = FIRST_CORRELATION
    _operator: int = 40_000
    _state: int = 0

    def __post_init__(self) -> None:
        self._state = 88_172_645 + self.index
        domain = Range(self.now, "NCCL", DOMAIN_CREATE, domain=NCCL_DOMAIN, thread=self.thread)
        self.ranges.append(domain)

    @property
    def thread(self) -> int:
        """`globalTid` of the worker thread, which does all launches."""
        return gtid(self.pid, self.pid)

    @property
    def watchdog(self) -> int:
        """`globalTid` of the thread that only polls NCCL events."""
        return gtid(self.pid, self.pid + 41)

    def jitter(self, mean: int, percent: int = 6) -> int:
        """A duration within `percent` of `mean`."""
        self._state = (self._state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return mean + mean * percent * ((self._state >> 33) % 2001 - 1000) // 100_000

    @contextmanager
    def range(self, text: str, nccl: bool = False) -> Iterator[None]:
        """A push/pop range around what the worker thread does inside."""
        domain = NCCL_DOMAIN if nccl else 0
        event = Range(self.now, text, domain=domain, text_registered=nccl, thread=self.thread)
        self.ranges.append(event)
        self._open.append(text)
        self.now += self.jitter(600)
        yield
        self.now += self.jitter(400)
        self._open.pop()
        event.end = self.now
        # A call that begins in the very ns in which a range ends would still be inside it.
        self.now += self.jitter(100)

    def call(self, name: str, duration: int, chain: str | None = None) -> Call:
        """An API call on the worker thread."""
        self._correlation += 1
        end = self.now + self.jitter(duration)
        call = Call(name, self.now, end, self._correlation, self.thread, chain)
        self.calls.append(call)
        self.now = end + self.jitter(300)
        return call

    def run(
        self,
        key: str,
        duration: int,
        after: int,
        correlation: int,
        path: Path,
        node: int | None = None,
        bytes: int = 0,
    ) -> None:
        """Puts an activity on its stream; compute and NCCL wait for one another."""
        collective = key in KERNELS and KERNELS[key].is_collective
        stream = NCCL_STREAM if collective else COMPUTE_STREAM
        start = max(after, *(free + self.jitter(900, 30) for free in self._free.values()))
        end = start + duration
        self._free[stream] = end
        self.truth[path] += duration
        self.activities.append(Activity(key, start, end, stream, correlation, node, bytes))

    def copy(self, direction: str, bytes: int) -> None:
        """A small memcpy; to the host, the thread waits for it."""
        call = self.call("cudaMemcpyAsync_v3020", 5_200)
        duration = self.jitter(1_500 + bytes // 20)
        after = call.start + 3_000
        self.run(direction, duration, after, call.correlation, tuple(self._open), bytes=bytes)
        if direction == "DtoH":
            wait = max(self._free[COMPUTE_STREAM] - self.now, 0)
            self.call("cudaStreamSynchronize_v3020", wait + 4_000)
            self.now = max(self.now, self._free[COMPUTE_STREAM] + 2_000)

    def launch(self, key: str, prefill: bool, traced: bool = False) -> None:
        """Launches a kernel (or memset) by its own API call; `traced` takes a backtrace."""
        call = self.call(_api(key), 4_600, key if traced else None)
        duration = self.jitter(_mean_ns(key, prefill))
        after = call.start + 3_200
        self.run(key, duration, after, call.correlation, tuple(self._open), bytes=_bytes(key))

    def eager(self, tokens: int) -> None:
        """Runs the model, every kernel launched by its own call."""
        self._visit(
            model(), tokens, lambda key: self.launch(key, prefill=True, traced=key != "memset")
        )

    def _visit(self, module: Module, tokens: int, launch: Callable[[str], None]) -> None:
        with self.range(module.range_text(tokens)):
            for part in module.body:
                if isinstance(part, Module):
                    self._visit(part, tokens, launch)
                elif part == "all_reduce":
                    with self.range("ncclAllReduce", nccl=True):
                        launch(part)
                else:
                    launch(part)

    def capture(self) -> None:
        """Captures the decode into a CUDA graph and instantiates it: nodes, and no GPU work."""
        with self.range("gpu_model_runner: capture_model"):
            self.call("cudaStreamBeginCapture_v10000", 6_000)
            self._visit(model(), GRAPH_BATCH, self._capture_node)
            self.call("cudaStreamEndCapture_v10000", 90_000)
            instantiate = self.call("cudaGraphInstantiate_v12000", 5_400_000)
            self._clone(instantiate)

    def _capture_node(self, key: str) -> None:
        call = self.call(_api(key), 5_000)
        # Node ids differ by rank, so that one id means two layers in the two processes.
        node = GRAPH_ID << 32 | len(self.graph) + 1 + 40 * self.index
        self.graph.append((key, node, tuple(self._open)))
        if key != UNMAPPED:
            self.nodes.append(Node(node, None, call.start + 1_000))

    def _clone(self, instantiate: Call) -> None:
        """Instantiation clones every node; the upper half of the layers, twice."""
        captured, self.graph = self.graph, []
        step = (instantiate.end - instantiate.start) // (2 * len(captured) + 1)
        time = instantiate.start
        for key, node, path in captured:
            deep = any(layer in text for text in path for layer in DEEP_LAYERS)
            for graph in (2, 3) if deep else (3,):
                clone = graph << 32 | node & 0xFFFF_FFFF
                time += step
                if key != UNMAPPED:
                    self.nodes.append(Node(clone, node, time))
                node = clone
            self.graph.append((key, node, path))

    def replay(self, slow: bool) -> None:
        """Launches the graph: one call, all kernels."""
        call = self.call("cudaGraphLaunch_v10000", 95_000)
        begin = call.start + 12_000
        for key, node, path in self.graph:
            mean = _mean_ns(key, prefill=False)
            if slow and key.startswith("experts") and f".layers.{SLOW_LAYER}." in path[-1]:
                mean *= 24
            # A node that has no row cannot be traced back: only the replay's own ranges are known.
            full = tuple(self._open) + (() if key == UNMAPPED else path)
            self.run(key, self.jitter(mean), begin, call.correlation, full, node, bytes=_bytes(key))

    def operator(self, name: str, sizes: str, kernels: tuple[str, ...]) -> None:
        """A PyTorch operator with the range that `emit_nvtx` makes for it."""
        self._operator += 1
        with self.range(f"aten::{name}, op_id = {self._operator}, sizes = {sizes}"):
            for key in kernels:
                self.launch(key, prefill=False)

    def step(self, step: Step) -> None:
        """One engine step: schedule, prepare, forward, sample, and the wait for the tokens."""
        batch = step.context + step.generation
        with self.range("schedule: allocate_slots"):
            self.now += self.jitter(19_000_000 if step.slow else 420_000, 30)
            self.copy("HtoD", 8_192)
        with self.range(step.text):
            with self.range("gpu_model_runner: preprocess"):
                self.copy("HtoD", 64 * batch + 16 * step.context_tokens)
                self.launch("memset", prefill=False)
                self.launch("prepare", prefill=bool(step.context))
            with self.range("gpu_model_runner: forward"):
                if step.context:
                    self.eager(step.context_tokens + step.generation)
                else:
                    self.replay(step.slow)
            with self.range("gpu_model_runner: postprocess"):
                self.launch("lm_head", prefill=bool(step.context))
            with self.range("gpu_model_runner: sample"):
                logits = f"[[{batch}, 100544], []]"
                self.operator("div", logits, ("div",))
                self.operator("softmax", logits, ("softmax",))
                self.operator("argmax", logits, ("argmax",))
                self.copy("DtoH", 8 * batch)
            with self.range("gpu_model_runner: bookkeep"):
                self.now += self.jitter(85_000, 40)

    def mid_flight(self, count: int) -> None:
        """Kernels whose API calls were made before the recording began."""
        for number in range(count):
            correlation = FIRST_CORRELATION - count + number
            self.run("add", self.jitter(1_600), self.now + 1_000, correlation, ())

    def poll(self, begin: int, end: int, every: int) -> None:
        """The watchdog thread: its ranges and calls overlap the worker's and launch nothing."""
        for start in range(begin, end, every):
            event = Range(start, "nccl_watchdog: poll", thread=self.watchdog, end=start + 21_000)
            self.ranges.append(event)
            self._correlation += 1
            call = ("cudaEventQuery_v3020", start + 4_000, start + 9_000)
            self.calls.append(Call(*call, self._correlation, self.watchdog))
