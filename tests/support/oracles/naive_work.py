"""Count the work of the operators of a PyTorch trace in plain Python, from the definitions."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

Json = Any

SIZE = {
    "float": 4,
    "double": 8,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "long int": 8,
    "long": 8,
    "int": 4,
    "c10::Float8_e4m3fn": 1,
}


class NaiveCost(NamedTuple):
    """FLOPs, the shape that comes out (None: unknown) and which inputs are read."""

    flops: int
    out: tuple[int, ...] | None
    read: tuple[int, ...]


class NaiveKernel(NamedTuple):
    """One kernel; ``operator`` is None where it is of none with a formula."""

    ns: int
    flops: int = 0
    bytes: int = 0
    operator: str | None = None


class NaiveWork(NamedTuple):
    """All kernels in the file's order; operators with a formula and no kernel, and their FLOPs."""

    kernels: list[NaiveKernel]
    bare: int
    bare_flops: int


def _ints(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", text)]


def _attention(q: Json, k: Json, v: Json) -> tuple[int, tuple[int, ...]]:
    b, h, sq, d = q
    sk, dv = k[2], v[3]
    assert k[0] == b and v[0] == b and k[3] == d and v[2] == sk and h % k[1] == 0
    return 2 * b * h * sq * sk * (d + dv), (b, h, sq, dv)


def _attention_backward(q: Json, k: Json, v: Json) -> int:
    b, h, sq, d = q
    return int(2 * b * h * sq * k[2] * (3 * d + 2 * v[3]))


def _swap(shape: Json) -> tuple[int, ...]:
    return shape[0], shape[2], shape[1], shape[3]


def _convolution(x: Json, w: Json, values: Json) -> tuple[int, tuple[int, ...]]:
    stride, padding, dilation, more = (_ints(values[at]) for at in (0, 1, 2, 4))
    transposed, groups = values[3] == "True", int(values[5])
    each = list(zip(x[2:], w[2:], stride, padding, dilation, more, strict=True))
    if transposed:
        out = tuple((i - 1) * s - 2 * p + d * (k - 1) + 1 + o for i, k, s, p, d, o in each)
        return 2 * x[0] * prod(x[2:]) * prod(w), (x[0], w[1] * groups, *out)
    out = tuple((i + 2 * p - d * (k - 1) - 1) // s + 1 for i, k, s, p, d, _ in each)
    return 2 * x[0] * prod(out) * prod(w), (x[0], w[0], *out)


def naive_cost(name: str, dims: Json, values: Json) -> NaiveCost | None:
    """The cost of an operator, by PyTorch's flop_counter; None without a formula."""
    try:
        return _cost(name.removeprefix("aten::"), dims, values)
    except (AssertionError, ValueError, IndexError, TypeError):
        return None


def _cost(name: str, dims: Json, values: Json) -> NaiveCost | None:
    if name in ("mm", "_scaled_mm", "addmm", "_addmm_activation"):
        first = int("add" in name)
        (m, k), (k2, n) = dims[first : first + 2]
        assert k == k2
        return NaiveCost(2 * m * n * k, (m, n), tuple(range(first + 2)))
    if name in ("bmm", "baddbmm"):
        first = int(name == "baddbmm")
        (g, m, k), (g2, k2, n) = dims[first : first + 2]
        assert g == g2 and k == k2
        return NaiveCost(2 * g * m * n * k, (g, m, n), tuple(range(first + 2)))
    if re.fullmatch(r"_scaled_dot_product_(flash|efficient|cudnn)_attention", name):
        return NaiveCost(*_attention(*dims[:3]), (0, 1, 2))
    if re.fullmatch(r"_scaled_dot_product_(flash|efficient|cudnn)_attention_backward", name):
        return NaiveCost(_attention_backward(*dims[1:4]), None, ())
    if name == "_flash_attention_forward" and not dims[3] and len(dims[0]) == 4:
        return NaiveCost(*_attention(*map(_swap, dims[:3])), (0, 1, 2))
    if name in ("convolution", "_convolution"):
        return NaiveCost(*_convolution(dims[0], dims[1], values[3:9]), (0, 1))
    if name == "convolution_backward":
        one, _ = _convolution(dims[1], dims[2], values[4:10])
        return NaiveCost(one * re.findall(r"\w+", values[10])[:2].count("True"), None, ())
    return None


def _bytes(args: Json, cost: NaiveCost) -> int:
    """Each element that exists read once, each output element written once; 0 unknown."""
    types, strides = args.get("Input type", []), args.get("Input Strides")
    if cost.out is None or any(types[at] not in SIZE for at in cost.read):
        return 0
    total = prod(cost.out) * SIZE[types[cost.read[-1]]]
    for at in cost.read:
        dims = args["Input Dims"][at]
        steps = strides[at] if strides else [1] * len(dims)
        real = (size for size, step in zip(dims, steps, strict=True) if step != 0)
        total += prod(real) * SIZE[types[at]]
    return total


def split(total: int, weights: list[int]) -> list[int]:
    """``total`` by ``weights``, exactly in sum: the largest remainders get the rest."""
    whole = sum(weights)
    if not whole:
        return [total] + [0] * (len(weights) - 1)
    parts = [total * weight // whole for weight in weights]
    order = sorted(range(len(weights)), key=lambda at: (-(total * weights[at] % whole), at))
    for at in order[: total - sum(parts)]:
        parts[at] += 1
    return parts


class _Events(NamedTuple):
    """Operators with a formula by thread, launches by correlation id, kernels in order.

    Which of these are collectives: they do nothing of what an operator calculates.
    """

    operators: dict[Json, list[Json]]
    launches: dict[Json, Json]
    kernels: list[tuple[int, Json]]
    collectives: set[int]

    @classmethod
    def read(cls, path: Path) -> _Events:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            events = json.load(file)["traceEvents"]
        found = cls(defaultdict(list), {}, [], set())
        for event in events:
            found.add(event, event.get("args") or {}, event.get("cat"))
        return found

    def add(self, event: Json, args: Json, category: Json) -> None:
        if category == "cpu_op" and "Input Dims" in args:
            cost = naive_cost(event["name"], args["Input Dims"], args.get("Concrete Inputs", ()))
            if cost:
                row = (event["ts"], event["ts"] + event["dur"], event["name"], args, cost)
                self.operators[event["pid"], event["tid"]].append(row)
        elif category in ("cuda_runtime", "cuda_driver") and "correlation" in args:
            self.launches[args["correlation"]] = (event["pid"], event["tid"], event["ts"])
        elif category == "kernel":
            if event["name"].startswith("nccl"):
                self.collectives.add(len(self.kernels))
            self.kernels.append((round(event["dur"] * 1000), args.get("correlation")))


def naive_work(path: Path) -> NaiveWork:
    """The work of the kernels of the trace at ``path``, whose times are in µs."""
    operators, launches, kernels, collectives = _Events.read(path)
    outer = {thread: _outermost(rows) for thread, rows in operators.items()}
    groups: dict[Json, list[int]] = defaultdict(list)
    for number, (_, correlation) in enumerate(kernels):
        *thread, time = launches.get(correlation, (None, None, 0))
        for place, (begin, end, *_) in enumerate(outer.get(tuple(thread), [])):
            if begin <= time <= end and number not in collectives:
                groups[(*thread, place)].append(number)
    found = [NaiveKernel(ns) for ns, _ in kernels]
    for (*thread, place), members in groups.items():
        _, _, name, args, cost = outer[tuple(thread)][place]
        weights = [kernels[number][0] for number in members]
        parts = zip(split(cost.flops, weights), split(_bytes(args, cost), weights), strict=True)
        for number, (flops, moved) in zip(members, parts, strict=True):
            found[number] = NaiveKernel(kernels[number][0], flops, moved, name)
    bare = [
        row[-1].flops
        for thread, rows in outer.items()
        for place, row in enumerate(rows)
        if (*thread, place) not in groups
    ]
    return NaiveWork(found, len(bare), sum(bare))


def _outermost(rows: list[Json]) -> list[Json]:
    """Those that are in no other one: an operator inside another is part of it."""
    kept, until = [], -1.0
    for row in sorted(rows, key=lambda row: (row[0], -row[1])):
        if row[0] >= until:
            kept.append(row)
            until = row[1]
    return kept
