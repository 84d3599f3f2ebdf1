"""Read trees of Triton's profiler Proton (`.hatchet`): scopes or Python calls, and kernels.

The format is Hatchet's "literal" JSON, as Proton writes it (triton-lang/triton,
third_party/proton/csrc/lib/Data): a list of the tree's root and of what is known of the devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from flame.core.columns import I4, I8
from flame.core.errors import InputError
from flame.core.memory import within_memory
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.meta import Meta
from flame.core.model.raw import Measure, RawStacks
from flame.core.model.stacks import StackBuilder
from flame.core.names.cuda import demangle, kernel_base
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.shared.decimals import NUMBER, DecimalNumbers, decimal_unit
from flame.core.readers.shared.deep_json import decode_json
from flame.core.readers.shared.frame_text import NO_NAME, parse_frame
from flame.core.readers.shared.packed_files import PackedError, read_whole
from flame.core.readers.shared.stack_rows import Tick, build_tree_stacks
from flame.core.readers.stacks.metric_keys import MetricKeys

_ROOT = "ROOT"
_TIME = "time (ns)"
_FIRST = (_TIME, "count")
_PROPERTIES = ("device_id", "device_type")
_UNITS = {"(ns)": "ns", "bytes": "bytes"}
_TITLES = {"time": "GPU time", "cpu_time": "CPU time"}

# Proton sums a metric over the tree unless it is "exclusive", which means: not to be added to the
# parent's, as what is measured around a scope holds what is measured around the scopes in it.
_WITH_CHILDREN = ("cycles", "normalized_cycles", "cpu_time (ns)")
_WITH_CHILDREN_MARK = "(inc)"

_NODES = 1 << 14

_PER_BYTE = 2
_BESIDE = {b"{": 350, b"[": 90, b",": 60}
"""Bytes of memory that a byte of a file takes, and those that an object with its place in the tree,
a list and an item take besides."""


def read_proton(path: Path, options: LoadOptions, progress: Progress) -> RawStacks:
    """Read the Proton profile at ``path``: one row per node that something was measured at.

    A node's metrics are its own; those of its children are not in them, except for cycles, CPU time
    and what is called ``(inc)``, from which the children's are subtracted. Time is the first
    measure, then the count, then the others by name; one that is 0 everywhere is left out. Numbers
    are exact to 9 decimals, times and bytes are rounded to whole ones.

    Kernels are what has a device, Python frames what names a Python file and its line, and all
    other nodes are ranges. Where there are several devices, a kernel is below the one it ran on.
    ``options`` make no difference. Raises InputError for what is no such tree, holds no numbers, or
    numbers that add up to 2**62 or more.
    """
    document = _read_document(path, progress)
    tick = partial(progress, "reading the tree", 0, 0)
    try:
        tree = _Tree((part for part in document if "frame" in part), tick)
        within_memory(path, tree.size_of_measures(), silent)
        raw = _build_stacks(tree, tick)
    except _MalformedTreeError as error:
        raise InputError(f"{path}: not a tree as Proton writes it: {error}") from None
    if not raw.measures:
        raise InputError(f"{path}: no node of the tree has a metric: was anything launched?")
    raw.meta = _build_meta(path, document)
    return raw


def _build_stacks(tree: _Tree, tick: Tick) -> RawStacks:
    frames = FrameBuilder()
    stacks, stack = tree.stacks(frames, tick)
    metrics = _Metrics(tree)
    measures = metrics.measures()
    rows = np.flatnonzero(
        sum((measure.values > 0 for measure in measures), np.zeros(len(stack), bool))
    )
    return RawStacks(
        frames=frames,
        stacks=stacks,
        stack=stack[rows],
        measures=tuple(replace(measure, values=measure.values[rows]) for measure in measures),
        meta=Meta(),
        warnings=metrics.warnings,
    )


class _MalformedTreeError(Exception):
    """Something in the file is not what it should be."""


def _read_document(path: Path, progress: Progress) -> list[dict[str, Any]]:
    """Read the objects in the file's list."""
    try:
        data = read_whole(path, progress)
        within_memory(path, _memory_needed(data), silent)
        document = decode_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise InputError(f"{path}: damaged, or cut off: {error}; copy it again") from None
    except PackedError as error:
        raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not isinstance(document, list) or not all(isinstance(part, dict) for part in document):
        raise InputError(f"{path}: not a tree as Proton writes it: no list of objects")
    return document


def _memory_needed(data: bytes) -> int:
    """Estimate how many bytes of memory the tree in ``data`` takes, and itself."""
    beside = sum(size * data.count(sign) for sign, size in _BESIDE.items())
    return _PER_BYTE * len(data) + beside


def _build_meta(path: Path, document: Iterable[dict[str, Any]]) -> Meta:
    """Read the facts on devices, into ``options``: ``CUDA 0``: ``arch 90, …``."""
    known = {
        f"{kind} {number}": ", ".join(_spell_facts(facts))
        for part in document
        if "frame" not in part
        for kind, devices in part.items()
        if isinstance(devices, dict)
        for number, facts in devices.items()
        if isinstance(facts, dict)
    }
    return Meta(str(path), "proton", producer="Triton Proton", options=known)


def _spell_facts(facts: dict[str, Any]) -> Iterator[str]:
    """Spell each fact; what lists or objects hold is left out."""
    for key, value in facts.items():
        if not isinstance(value, list | dict):
            yield f"{key} {value}"


class _Tree:
    """The nodes in preorder, and the place of the parent of each (-1: it is outermost)."""

    def __init__(self, roots: Iterable[dict[str, Any]], tick: Tick) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.above: list[int] = []
        pending = [(root, -1) for root in roots][::-1]
        while pending:
            node, above = pending.pop()
            if len(self.nodes) % _NODES == 0:
                tick()
            pending.extend((child, len(self.nodes)) for child in _children(node)[::-1])
            self.nodes.append(node)
            self.above.append(above)
        self.names = [_name(node) for node in self.nodes]
        self.metrics = [_checked_value(node, "metrics", dict) for node in self.nodes]

    def size_of_measures(self) -> int:
        """Return how many bytes all metrics take: a number for each node, and for each row."""
        names = {name for metrics in self.metrics for name in metrics}
        return 2 * np.dtype(np.int64).itemsize * len(names) * len(self.nodes)

    def devices(self) -> list[str]:
        """Return the device of each node; empty where a node names none, or all name the same."""
        devices = [_device(metrics) for metrics in self.metrics]
        return devices if len(set(devices) - {""}) > 1 else [""] * len(devices)

    def stacks(self, frames: FrameBuilder, tick: Tick) -> tuple[StackBuilder, I4]:
        """Build all stacks, and return the id of each node's; new frames go into ``frames``."""
        parent, frame, depth = [0], [0], [0]
        place: list[int] = []

        def below(above: int, top: Frame) -> int:
            parent.append(above)
            frame.append(frames.add(top))
            depth.append(depth[above] + 1)
            return len(parent) - 1

        for name, metrics, above, device in self._rows():
            at = place[above] if above >= 0 else 0
            if above >= 0 or name != _ROOT:
                at = below(at, Frame(Kind.DEVICE, f"GPU {device}")) if device else at
                at = below(at, _frame(name, "device_id" in metrics))
            place.append(at)
        stacks, ids = build_tree_stacks(np.array(parent), np.array(frame), np.array(depth), tick)
        return stacks, ids[place]

    def _rows(self) -> Iterable[tuple[str, dict[str, Any], int, str]]:
        return zip(self.names, self.metrics, self.above, self.devices(), strict=True)


def _device(metrics: dict[str, Any]) -> str:
    device = metrics.get("device_id")
    return "" if not device or isinstance(device, list | dict) else str(device)


def _children(node: dict[str, Any]) -> list[dict[str, Any]]:
    children: list[dict[str, Any]] = _checked_value(node, "children", list)
    if not all(isinstance(child, dict) for child in children):
        raise _MalformedTreeError("a child that is no object")
    return children


def _name(node: dict[str, Any]) -> str:
    name = _checked_value(node, "frame", dict).get("name", "")
    if not isinstance(name, str):
        raise _MalformedTreeError("a frame whose name is no text")
    return name


def _checked_value(node: dict[str, Any], key: str, kind: type) -> Any:
    """Return what the node has under ``key``, empty if there is nothing."""
    part = node.get(key)
    if part is not None and not isinstance(part, kind):
        wanted = "list" if kind is list else "object"
        raise _MalformedTreeError(f"a node whose {key} is no {wanted}")
    return part or kind()


def _frame(name: str, is_kernel: bool) -> Frame:
    if is_kernel:
        return _kernel_frame(name)
    frame = parse_frame(name)
    is_call = frame.kind == Kind.PYTHON and frame.line
    return frame if is_call else Frame(Kind.NVTX, frame.name if frame.name == NO_NAME else name)


def _kernel_frame(name: str) -> Frame:
    full = demangle(name)
    extra = (("demangled", full), ("mangled", name)) if full != name else (("demangled", name),)
    return Frame(Kind.KERNEL, kernel_base(full) or NO_NAME, extra=extra if name else ())


class _Metrics:
    """The numbers of a tree, by metric and node."""

    def __init__(self, tree: _Tree) -> None:
        self.warnings: list[str] = []
        self._above = tree.above
        self._found: dict[str, dict[int, bytes]] = {}
        self._negative = 0
        self._strange: set[str] = set()
        for node, metrics in enumerate(tree.metrics):
            for name, value in metrics.items():
                self._add(node, name, value)
        self._warn()

    def _add(self, node: int, name: str, value: object) -> None:
        """Note a number; zeros need no note."""
        if value is None or name in _PROPERTIES:
            return
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        text = repr(value).encode("ascii", "replace") if number else b""
        if text.startswith(b"-"):
            self._negative += 1
        elif not NUMBER.fullmatch(text):
            self._strange.add(name)
        elif value:
            self._found.setdefault(name, {})[node] = text

    def _warn(self) -> None:
        if self._negative:
            self.warnings.append(f"metrics below 0 count as 0: {self._negative:,}")
        if self._strange:
            names = ", ".join(sorted(self._strange))
            self.warnings.append(f"metrics that are no numbers are left out: {names}")

    def measures(self) -> list[Measure]:
        """Build each metric by node, without those that repeat others with the children's added."""
        names = [name for name in self._found if not self._repeats_other(name)]
        rank = {name: place for place, name in enumerate(_FIRST)}
        names.sort(key=lambda name: (rank.get(name, len(rank)), name))
        measures, keys = [], MetricKeys("_")
        for name in names:
            try:
                measures.append(self._build_measure(name, keys))
            except OverflowError:
                self.warnings.append(f"{name} adds up to more than 64 bits hold: left out")
        return measures

    def _repeats_other(self, name: str) -> bool:
        own = name.removesuffix(_WITH_CHILDREN_MARK).rstrip()
        return own != name and own in self._found

    def _build_measure(self, name: str, keys: MetricKeys) -> Measure:
        numbers = DecimalNumbers()
        numbers.add(list(self._found[name].values()))
        whole, power = numbers.build()
        unit = _UNITS.get(name.rpartition(" ")[2], decimal_unit(power))
        if unit in _UNITS.values():
            whole = (whole + 10**power // 2) // 10**power
        values: I8 = np.zeros(len(self._above), np.int64)
        values[list(self._found[name])] = whole
        if name in _WITH_CHILDREN or name.endswith(_WITH_CHILDREN_MARK):
            values = self._subtract_children(values)
        key = keys.take(_metric_key(name))  # only here: what is too large takes none
        return Measure(key, _TITLES.get(key, name), unit, values)

    def _subtract_children(self, values: I8) -> I8:
        """Return each node's value without its children's; parents hold all of those."""
        whole, inner = values.tolist(), [0] * len(values)
        for node in range(len(whole) - 1, -1, -1):
            whole[node] = max(whole[node], inner[node])
            if self._above[node] >= 0:
                inner[self._above[node]] += whole[node]
        return np.array(whole, np.int64) - np.array(inner, np.int64)


def _metric_key(name: str) -> str:
    """Return what a command line calls the metric."""
    return re.sub(r"[^a-z0-9]+", "_", name.removesuffix("(ns)").lower()).strip("_") or "metric"
