"""A tiny builder of PyTorch profiler traces, so that a test arranges a trace in a few lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

Json = Any
Dim = tuple[int, int, int]


class KinetoFile:
    """Collects events and writes one trace. All times are ns, as (start, end).

    Every method that adds an event returns it, so that a test can spoil it. ``top`` is what stands
    beside `traceEvents`; ``**args`` of a method are further args of the event, with `_` for a space
    (``Sequence_number=3``). ``pid`` and ``tid`` are those of events that name none.
    """

    def __init__(self, pid: int | str = 100, tid: int | str = 1) -> None:
        self.pid = pid
        self.tid = tid
        self.events: list[dict[str, Json]] = []
        self.top: dict[str, Json] = {"schemaVersion": 1}

    def event(self, **fields: Json) -> dict[str, Json]:
        """Any event, as it is."""
        self.events.append(fields)
        return fields

    def span(
        self, category: str, name: str, start: int, end: int, where: Json, args: dict[str, Json]
    ) -> dict[str, Json]:
        """A complete event (`ph` X) of ``category`` at ``where`` = (pid, tid)."""
        times = {"ts": start / 1000, "dur": (end - start) / 1000}
        pid, tid = where
        return self.event(ph="X", cat=category, name=name, pid=pid, tid=tid, **times, args=args)

    def _host(self, category: str, name: str, start: int, end: int, args: Json) -> dict[str, Json]:
        where = (args.pop("pid", self.pid), args.pop("tid", self.tid))
        spelled = {key.replace("_", " "): value for key, value in args.items()}
        return self.span(category, name, start, end, where, spelled)

    def op(self, name: str, start: int, end: int, **args: Json) -> dict[str, Json]:
        """An operator: ``Input_Dims``, ``Call_stack``, ``Sequence_number``, ``Fwd_thread_id``."""
        return self._host("cpu_op", name, start, end, args)

    def annotation(self, name: str, start: int, end: int, **args: Json) -> dict[str, Json]:
        """A `record_function` range, or a step: ``ProfilerStep#3``."""
        return self._host("user_annotation", name, start, end, args)

    def python(
        self, name: str, start: int, end: int, call: int = 0, caller: int | None = 0, **args: Json
    ) -> dict[str, Json]:
        """A Python function (``model.py(12): forward``); ``call`` 0: no ids, caller None: null."""
        ids = {"Python_id": call, "Python_parent_id": caller} if call else {}
        return self._host("python_function", name, start, end, {**ids, **args})

    def runtime(
        self,
        correlation: int | None,
        start: int,
        end: int,
        name: str = "cudaLaunchKernel",
        **args: Json,
    ) -> dict[str, Json]:
        """A call of the CUDA runtime; ``category="cuda_driver"`` for the driver."""
        category = args.pop("category", "cuda_runtime")
        return self._host(category, name, start, end, {"correlation": correlation, **args})

    def _gpu(
        self, category: str, name: str, start: int, end: int, correlation: int, args: Json
    ) -> dict[str, Json]:
        device, stream = args.pop("device", 0), args.pop("stream", 7)
        known = {"device": device, "stream": stream, "correlation": correlation}
        spelled = {key.replace("_", " "): value for key, value in args.items()}
        return self.span(category, name, start, end, (device, stream), {**known, **spelled})

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        correlation: int = 0,
        grid: Dim = (8, 1, 1),
        block: Dim = (128, 1, 1),
        **args: Json,
    ) -> dict[str, Json]:
        """A kernel; ``device`` and ``stream`` are 0 and 7 unless given."""
        shape = {"grid": list(grid), "block": list(block)}
        return self._gpu("kernel", name, start, end, correlation, {**shape, **args})

    def memcpy(
        self, start: int, end: int, correlation: int = 0, size: int = 4096, **args: Json
    ) -> dict[str, Json]:
        """A copy from host to device of ``size`` bytes, unless a ``name`` says another."""
        name = args.pop("name", "Memcpy HtoD (Pinned -> Device)")
        return self._gpu("gpu_memcpy", name, start, end, correlation, {"bytes": size, **args})

    def memset(
        self, start: int, end: int, correlation: int = 0, size: int = 16, **args: Json
    ) -> dict[str, Json]:
        """A set of ``size`` bytes."""
        args = {"bytes": size, **args}
        return self._gpu("gpu_memset", "Memset (Device)", start, end, correlation, args)

    def gpu_annotation(
        self, name: str, start: int, end: int, device: int = 0, stream: int | str = 7
    ) -> dict[str, Json]:
        """A range on the GPU's own time line."""
        return self.span("gpu_user_annotation", name, start, end, (device, stream), {})

    def launch(
        self, correlation: int, call: tuple[int, int], work: tuple[int, int], name: str = "kernel"
    ) -> None:
        """A runtime call and the kernel that it launched."""
        self.runtime(correlation, *call)
        self.kernel(name, *work, correlation)

    def flow(self, number: int, source: dict[str, Json], target: dict[str, Json]) -> None:
        """The arrow from a forward operator to its backward one."""
        for phase, end in (("s", source), ("f", target)):
            where = {key: end[key] for key in ("pid", "tid", "ts")}
            self.event(ph=phase, cat="fwdbwd", name="fwdbwd", id=number, **where, bp="e")

    def memory(
        self,
        at: int,
        change: object,
        address: object,
        in_use: object,
        device: int = 0,
        order: int = 0,
        kind: int = 1,
        reserved: object = None,
        **where: Json,
    ) -> dict[str, Json]:
        """Memory given out (``change`` bytes) or back (negative), with what is in use then."""
        args = {"Bytes": change, "Addr": address, "Total Allocated": in_use}
        args |= {} if reserved is None else {"Total Reserved": reserved}
        args |= {"Device Id": device, "Device Type": kind, "Ev Idx": order}
        place = {"pid": self.pid, "tid": self.tid, **where}
        named = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]"}
        return self.event(**named, **place, ts=at / 1000, args=args)

    def named(self, what: str, name: str, **where: Json) -> dict[str, Json]:
        """What a process or thread is called: ``what`` is process_name or thread_name."""
        place = {"pid": self.pid, "tid": self.tid, **where}
        return self.event(ph="M", name=what, ts=0, **place, args={"name": name})

    def device(self, number: int, name: str) -> None:
        """A GPU of the machine."""
        self.top.setdefault("deviceProperties", []).append({"id": number, "name": name})

    def text(self, indent: int | None = None) -> str:
        """The whole trace: ``top`` before the events, as Kineto writes it."""
        return json.dumps({**self.top, "traceEvents": self.events}, indent=indent)

    def write(self, path: Path) -> Path:
        """Write the trace; gzipped where ``path`` ends in `.gz`."""
        data = self.text().encode()
        path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
        return path
