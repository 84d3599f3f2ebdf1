"""Tell which collective a kernel of communication is, by its name or what the trace says of it."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.lazy_regex import lazy_regex
from flame.core.names.tensors import bytes_of

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
    r"(?P<name>[^,]+)(?:, (?P<number>[0-9]{1,18}) (?!ranks?\b)(?P<type>[\w:]+))?"
    r"(?:, (?P<ranks>[0-9][0-9,]{0,12}) ranks?)?"
)

_LARGEST = 1 << 40
"""Bytes: more than any GPU has; a larger number is damage, and would not add up in 63 bits."""

_MEMBER = lazy_regex(r"[0-9]{1,9}")
_WHOLE = lazy_regex(r"\[[0-9, ]*\]")


class Collective(NamedTuple):
    """Describe a collective: its ``name``, the ``ranks`` of its group, its ``bytes``.

    These are of the input of a rank, of an all-gather of its output, of a mere receive what is
    received: what bandwidths of collectives are told by. Both are None where the trace does not say
    them, and ``group``, which names the group and who is in it, is empty. So are ``reduction``,
    what is done with the elements, and ``root``, the rank that gives or gets all.
    """

    name: str
    ranks: int | None = None
    bytes: int | None = None
    group: str = ""
    reduction: str = ""
    root: int | None = None

    @property
    def bus_factor(self) -> float | None:
        """Times what each byte crosses a link, by the algorithm of least traffic.

        As nccl-tests count it.
        """
        if self.ranks is None or self.ranks < 2:
            return None
        part = (self.ranks - 1) / self.ranks
        scattered = dict.fromkeys(("all-gather", "reduce-scatter", "all-to-all"), part)
        whole = dict.fromkeys(("broadcast", "reduce"), 1.0)
        return {"all-reduce": 2 * part, **scattered, **whole}.get(self.name)


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
    ranks = int(told["ranks"].replace(",", "")) if told["ranks"] else None
    sent = int(told["number"]) if told["number"] else None
    return told_collective(kernel, told["name"], told["type"] or "", sent, None, ranks)


def told_collective(
    kernel: str,
    called: str,
    dtype: str,
    sent: int | None,
    received: int | None,
    ranks: int | None,
    group: str = "",
) -> Collective:
    """Tell the collective that a program ``called`` so, with a ``kernel`` of that name.

    ``sent`` and ``received`` are elements of ``dtype`` that a rank gives and gets.
    """
    name = _named(called)
    number = sent
    if name == "all-gather":
        number = received if received or not sent or not ranks else sent * ranks
    if name == "send/receive" and sent is None:
        number = received
    size = bytes_of(dtype)
    known = number * size if number is not None and size else None
    if known is not None and known > _LARGEST:
        known = None
    return Collective(_named(kernel) if name == OTHER else name, ranks, known, group)


def group_label(name: str, about: str, members: str) -> str:
    """Name a group of ranks: ``2: tensor_parallel [0-3]``.

    ``members`` are as PyTorch writes them: ``[0, 1, 2, 3]``, cut off after 30.
    """
    ranks = _MEMBER.findall(members)
    spans = rank_spans([int(one) for one in ranks])
    more = [] if _WHOLE.fullmatch(members) else ["…"]
    inside = f"[{', '.join([*spans, *more])}]" if ranks else ""
    return " ".join(filter(None, (": ".join(filter(None, (name, about))), inside)))


def rank_spans(ranks: list[int]) -> list[str]:
    """Shorten runs of numbers: 0, 1, 2, 8 is 0-2, 8."""
    spans: list[list[int]] = []
    for one in ranks:
        if spans and one == spans[-1][-1] + 1:
            spans[-1][1:] = [one]
        else:
            spans.append([one])
    return ["-".join(map(str, span)) for span in spans]


def _named(text: str) -> str:
    return next((name for name, pattern in _COLLECTIVES if pattern.search(text)), OTHER)
