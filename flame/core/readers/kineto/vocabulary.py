"""Make frames of the names in a trace, each distinct name once."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

import msgspec
import numpy as np

from flame.core.columns import I4
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.launches import LaunchConfig
from flame.core.names.cuda import api_name, demangle, kernel_base
from flame.core.names.nvtx import RangeName, clean_range
from flame.core.readers.kineto.events import EventArgs, EventDetails, Text
from flame.core.readers.shared.cupti import memory_named
from flame.core.units import format_counted

_Key = TypeVar("_Key", bound=Hashable)

# `torch/nn/modules/module.py(1743): _call_impl`. A path may hold brackets itself.
_PYTHON = lazy_regex(r"(.+)\((\d{1,9})\): (.*)", re.DOTALL)
# `<built-in method to of Tensor object at 0x7f5b…>`: an address is another in every process.
_ADDRESS = lazy_regex(r" at 0x[0-9a-fA-F]++")
_COPY = lazy_regex(r"Memcpy (\w{2,8})\b")
_MEMORY = lazy_regex(r"\((?:([\w ]{1,20}?) *-> *)?([\w ]{1,20})\)")


class FrameIds(dict[_Key, int], Generic[_Key]):
    """Frame ids by what names an event; new frames are added."""

    def __init__(self, frames: FrameBuilder, make: Callable[[_Key], Frame]) -> None:
        super().__init__()
        self._frames = frames
        self._make = make

    def __missing__(self, key: _Key) -> int:
        frame = self[key] = self._frames.add(self._make(key))
        return frame

    def of(self, keys: Iterable[_Key]) -> I4:
        """Return the frames of ``keys``, i4[n]."""
        return np.fromiter(map(self.__getitem__, keys), np.int32)


def python_frame(name: str) -> Frame:
    """Make the frame of `model.py(12): forward`; a built-in function loses its address."""
    match = _PYTHON.fullmatch(name)
    if match is None:
        return Frame(Kind.PYTHON, _ADDRESS.sub("", name))
    file, line, function = match.groups()
    return Frame(Kind.PYTHON, function, file, int(line))


def kernel_frame(name: str) -> Frame:
    """Make the frame of a kernel, called by its base name; the full name and symbol are kept."""
    full = demangle(name)
    symbol = name if full != name or name.startswith("_Z") else ""
    known = tuple(pair for pair in (("demangled", full), ("mangled", symbol)) if pair[1])
    return Frame(Kind.KERNEL, kernel_base(full) or "[kernel without a name]", extra=known)


def copy_frame(name: str) -> Frame:
    """Make the frame of `Memcpy HtoD (Pinned -> Device)`, called by its direction."""
    match = _COPY.match(name)
    return Frame(Kind.MEMCPY, f"memcpy {match[1]}" if match else "memcpy")


def set_frame(_name: str) -> Frame:
    """Make the frame of memory sets, one for all."""
    return Frame(Kind.MEMSET, "memset")


def memory_of(name: str) -> LaunchConfig:
    """Find the kinds of memory that `Memcpy HtoD (Pinned -> Device)` or `Memset (Device)` names."""
    match = _MEMORY.search(name)
    if match is None:
        return LaunchConfig()
    source, target = (text and memory_named(text) for text in match.groups())
    return LaunchConfig(source=source, target=target)


def call_frame(name: str) -> Frame:
    """Make the frame of a call of the runtime or the driver."""
    return Frame(Kind.LAUNCH, api_name(name) or "[API call without a name]")


RangeKey = tuple[str, bytes, tuple[bytes, bytes, bytes], str]
"""A range's name, its `Input Dims` as recorded, and what else is known of it.

Of operators whose work is counted `Input type`, `Input Strides` and `Concrete Inputs`, too, as far
as these count.
"""


def range_frame(key: RangeKey, clean: bool) -> Frame:
    """Make the frame of an operator or annotation, which takes the place of an NVTX range."""
    text, dims, (types, strides, values), detail = key
    name = clean_range(text) if clean else RangeName(text)
    known = {
        "shapes": name.shapes or list_text(dims),
        "types": list_text(types),
        "strides": list_text(strides),
        "values": list_text(values),
        "detail": name.detail or detail,
    }
    extra = tuple((kind, value) for kind, value in known.items() if value)
    return Frame(Kind.NVTX, name.name or "[range without a name]", extra=extra)


STEP = lazy_regex(r"ProfilerStep#(\d{1,9})")
"""The name of a range around a step, and its number."""


class RangeFrameIds(FrameIds[RangeKey]):
    """Frame ids of operators and annotations; ``steps`` are those of the profiler's steps."""

    def __init__(self, frames: FrameBuilder, clean: bool) -> None:
        super().__init__(frames, partial(range_frame, clean=clean))
        self.steps: set[int] = set()

    def __missing__(self, key: RangeKey) -> int:
        frame = super().__missing__(key)
        if STEP.fullmatch(key[0]):
            self.steps.add(frame)
        return frame


_SPACE = lazy_regex(r"\s++")
_AMOUNT = lazy_regex(r"[0-9]{1,18}", re.ASCII)
_COMMA = lazy_regex(r",(?=\S)")


def list_text(value: bytes) -> str:
    """Format a list on one line: `[[16, 2880], []]`; empty where there is nothing in it."""
    text = _COMMA.sub(", ", _SPACE.sub("", value.decode("utf-8", "replace")))
    return text if any(sign.isalnum() for sign in text) else ""


def raw_texts(values: Sequence[Text]) -> list[bytes]:
    """Return the JSON texts of ``values``; nothing where one is absent."""
    absent = msgspec.UNSET
    return [b"" if value is absent else bytes(value) for value in values]


def amount(value: object) -> int | None:
    """Return ``value`` where it is a number that makes sense of anything counted."""
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        value = int(value)
    return value if type(value) is int and 0 <= value < 1 << 62 else None


def text_of(value: object) -> str:
    """Return ``value`` as text, whatever JSON it is; empty where it is absent."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def detail_text(args: EventArgs, details: EventDetails) -> str:
    """Describe a collective (`allreduce, 4096 float, 8 ranks`) or a Triton kernel."""
    if args.collective:
        sent, size = amount(details.sent), amount(details.ranks)
        number = f"{sent} {text_of(details.dtype) or 'elements'}" if sent else ""
        ranks = format_counted(size, "rank", "ranks") if size else ""
        return ", ".join(filter(None, (args.collective, number, ranks)))
    if args.backend:
        counts = {"warps": amount(details.num_warps), "stages": amount(details.num_stages)}
        known = [f"{number} {what}" for what, number in counts.items() if number]
        return ", ".join([args.backend, *known])
    return ""
