"""Tell which collective a kernel of communication is, by its name or what the trace says of it."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.lazy_regex import lazy_regex

OTHER = "other"

_PATTERNS = (
    ("all-reduce", r"all_?reduce|cross_?device_?reduce|(?:one|two)_?shot"),
    ("reduce-scatter", r"reduce_?scatter"),
    ("all-gather", r"all_?gather"),
    ("all-to-all", r"all_?to_?all|deep_?ep"),
    ("broadcast", r"broad_?cast"),
    ("send/receive", r"send_?recv|send|recv"),
    ("gather", r"gather"),
    ("scatter", r"scatter"),
    ("barrier", r"barrier"),
    ("reduce", r"reduce"),
)
_COLLECTIVES = tuple((name, lazy_regex(f"(?i){pattern}")) for name, pattern in _PATTERNS)

_DETAIL = lazy_regex(
    r"(?P<name>[^,]+)(?:, (?P<number>[0-9]+) (?!ranks?\b)(?P<type>[\w:]+))?"
    r"(?:, (?P<ranks>[0-9,]+) ranks?)?"
)

_BYTES = {
    "bool": 1, "byte": 1, "char": 1, "int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "half": 2, "float16": 2, "bfloat16": 2, "short": 2, "int16": 2,
    "float": 4, "float32": 4, "int": 4, "int32": 4,
    "double": 8, "float64": 8, "long": 8, "int64": 8,
}  # fmt: skip


class Collective(NamedTuple):
    """Describe a collective: its ``name``, the ``ranks`` of its group, its ``bytes``.

    These are of the input of a rank, of an all-gather of its output: what bandwidths of collectives
    are told by. The last two are None where the trace does not say them.
    """

    name: str
    ranks: int | None = None
    bytes: int | None = None

    @property
    def bus_factor(self) -> float | None:
        """Times what each byte crosses a link, by the algorithm of least traffic."""
        if self.ranks is None or self.ranks < 2:
            return None
        part = (self.ranks - 1) / self.ranks
        return {"all-reduce": 2 * part, "all-gather": part, "reduce-scatter": part}.get(self.name)


def is_collective(detail: str) -> bool:
    """Tell whether ``detail`` of a range describes a collective, as `collective_of` takes it."""
    told = _DETAIL.fullmatch(detail) if detail else None
    return told is not None and _named(told["name"]) != OTHER


def collective_of(kernel: str, detail: str = "") -> Collective:
    """Tell the collective of the kernel with that name.

    ``detail`` is what Kineto traces say of the operator that launched it, ``allreduce, 4096 float,
    8 ranks``; else empty.
    """
    told = _DETAIL.fullmatch(detail)
    if told is None:
        return Collective(_named(kernel))
    name = _named(told["name"])
    size = _BYTES.get((told["type"] or "").rpartition(":")[2].lower())
    ranks = int(told["ranks"].replace(",", "")) if told["ranks"] else None
    known = int(told["number"]) * size if told["number"] and size else None
    if known is not None and name == "all-gather":
        known = known * ranks if ranks else None
    return Collective(_named(kernel) if name == OTHER else name, ranks, known)


def _named(text: str) -> str:
    return next((name for name, pattern in _COLLECTIVES if pattern.search(text)), OTHER)
