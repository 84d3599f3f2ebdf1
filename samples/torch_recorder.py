"""Notes what the PyTorch profiler records of one process with one GPU, and the truth about it.

Everything follows from a fixed seed: a linear congruential generator of its own, because the
sequences of `random` may change with the Python version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

PID, MAIN, AUTOGRAD = 5201, 5201, 5277
STREAM = 7
MEMORY_BOUND = (256, 1, 1)

Event = dict[str, Any]
Path = tuple[str, ...]


def microseconds(ns: int) -> float:
    """``ns`` as Kineto writes times; exact for the times of a short trace."""
    return ns / 1000


@dataclass
class Thread:
    """A thread's clock (ns) and what is open on it: Python functions, and ranges of all kinds."""

    tid: int
    now: int = 0
    functions: list[tuple[str, int]] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)


@dataclass
class Recorder:
    """Events in the order in which they began.

    ``python`` maps the open Python functions (names in the trace, outer to inner) of every launch
    to GPU ns, ``ranges`` the open operators and annotations; ``kernels`` counts by name.
    """

    events: list[Event] = field(default_factory=list)
    python: Counter[Path] = field(default_factory=Counter)
    ranges: Counter[Path] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    main: Thread = field(default_factory=lambda: Thread(MAIN))
    autograd: Thread = field(default_factory=lambda: Thread(AUTOGRAD))
    _free: int = 0
    _calls: int = 0
    _correlation: int = 9_000
    _flow: int = 0
    _state: int = 41_777

    def jitter(self, mean: int, percent: int = 8) -> int:
        """A duration within ``percent`` of ``mean``."""
        self._state = (self._state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        return mean + mean * percent * ((self._state >> 33) % 2001 - 1000) // 100_000

    def _begin(self, thread: Thread, category: str, name: str, args: Event) -> Event:
        where = {"pid": PID, "tid": thread.tid, "ts": microseconds(thread.now), "dur": 0}
        event = {"ph": "X", "cat": category, "name": name, **where, "args": args}
        self.events.append(event)
        return event

    def _end(self, thread: Thread, event: Event, began: int) -> None:
        thread.now += self.jitter(400)
        event["dur"] = microseconds(thread.now - began)
        thread.now += self.jitter(200)

    @contextmanager
    def function(self, name: str) -> Iterator[None]:
        """A Python function, ``model.py(12): forward``, on the main thread."""
        thread, began = self.main, self.main.now
        self._calls += 1
        caller = thread.functions[-1][1] if thread.functions else None
        args = {"Python parent id": caller, "Python id": self._calls}
        event = self._begin(thread, "python_function", name, args)
        thread.functions.append((name, self._calls))
        thread.now += self.jitter(900)
        yield
        thread.functions.pop()
        self._end(thread, event, began)

    @contextmanager
    def operator(self, name: str, thread: Thread | None = None, **args: Any) -> Iterator[Event]:
        """An operator; ``Input_Dims`` and the like are its arguments."""
        spelled = {key.replace("_", " "): value for key, value in args.items()}
        with self._range("cpu_op", name, thread or self.main, spelled) as event:
            yield event

    @contextmanager
    def annotation(self, name: str) -> Iterator[None]:
        """A `record_function` range of the program, or a step of the profiler."""
        with self._range("user_annotation", name, self.main, {}):
            yield

    @contextmanager
    def _range(self, category: str, name: str, thread: Thread, args: Event) -> Iterator[Event]:
        began = thread.now
        event = self._begin(thread, category, name, args)
        thread.ranges.append(name)
        thread.now += self.jitter(700)
        yield event
        thread.ranges.pop()
        self._end(thread, event, began)

    def flow(self, forward: Event, backward: Event) -> None:
        """The arrow from a forward operator to what computes its gradient."""
        self._flow += 1
        for phase, event in (("s", forward), ("f", backward)):
            where = {key: event[key] for key in ("pid", "tid", "ts")}
            arrow = {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": self._flow, "bp": "e"}
            self.events.append({**arrow, **where})

    # What runs on the GPU

    def launch(self, kernel: str, mean: int, thread: Thread | None = None) -> None:
        """A kernel, and the call that launched it."""
        thread = thread or self.main
        after = self._call(thread, "cudaLaunchKernel", 4_800)
        self._run(thread, kernel, self.jitter(mean), after)

    def replay(self, kernels: Mapping[str, int], times: int) -> None:
        """A CUDA graph: one call for ``times`` rounds of ``kernels`` with their durations."""
        after = self._call(self.main, "cudaGraphLaunch", 21_000)
        for _ in range(times):
            for kernel, mean in kernels.items():
                self._run(self.main, kernel, self.jitter(mean), after)

    def copy(self, name: str, size: int, mean: int) -> None:
        """A copy; to the host, the program waits for it."""
        after = self._call(self.main, "cudaMemcpyAsync", 5_500)
        self._run(self.main, name, self.jitter(mean), after, size)
        if "DtoH" in name:
            began = self.main.now
            event = self._begin(self.main, "cuda_runtime", "cudaStreamSynchronize", {})
            self.main.now = max(self.main.now, self._free)
            self._end(self.main, event, began)

    def _call(self, thread: Thread, name: str, mean: int) -> int:
        """A runtime call; when what it launched may begin."""
        self._correlation += 1
        began = thread.now
        args = {"cbid": 211, "correlation": self._correlation}
        event = self._begin(thread, "cuda_runtime", name, args)
        thread.now += self.jitter(mean)
        self._end(thread, event, began)
        return began + 3_000

    def _run(self, thread: Thread, name: str, length: int, after: int, size: int = 0) -> None:
        start = max(after, self._free + self.jitter(800, 30))
        self._free = start + length
        self.python[tuple(function for function, _ in thread.functions)] += length
        self.ranges[tuple(thread.ranges)] += length
        shape = {"bytes": size} if size else {"grid": [132, 1, 1], "block": list(MEMORY_BOUND)}
        kept = {} if size else {"registers per thread": 64, "shared memory": 16_384}
        args = {"device": 0, "stream": STREAM, "correlation": self._correlation, **shape, **kept}
        category = "gpu_memcpy" if size else "kernel"
        self.kernels[name] += not size
        times = {"ts": microseconds(start), "dur": microseconds(length)}
        where = {"pid": 0, "tid": STREAM, **times, "args": args}
        self.events.append({"ph": "X", "cat": category, "name": name, **where})
