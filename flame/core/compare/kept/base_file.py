"""Declare, write and read kept bases: JSON, packed by gzip, that later versions read."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from flame._version import __version__
from flame.core.errors import InputError
from flame.core.memory import within_memory
from flame.core.options import silent
from flame.core.readers.shared.packed_files import GZIP, PackedError, open_binary

SCHEMA = 1
"""Counts up when something is renamed or goes, not by what is added."""

_BEGINS = b'{"flame_base":'
_FREE, _MOST_PACKED = 4 << 20, 50
"""Bytes of the JSON of any base, and more of them for a byte on disk; there are 3 to 8.

A base of a million kernels has 2.6 million.
"""

_PER_BYTE = 30
"""Bytes of memory that a byte of the JSON takes at most, in frames of short names: measured."""

_PIECE = 1 << 20

Count = Annotated[int, Meta(ge=0, le=1 << 62)]
"""A number or a sum of times, ns."""

Place = Annotated[int, Meta(ge=-1, le=(1 << 31) - 1)]
"""A place in another list; -1: none."""


class KeptFrame(Struct, frozen=True, array_like=True):
    """Hold what makes a frame the one that it is; see `flame.core.frame.Frame`."""

    kind: Count
    name: str
    file: str = ""
    line: Count = 0
    marks: list[tuple[str, str]] = field(default_factory=list)


class KeptGroups(Struct, frozen=True):
    """Hold the groups of activities: frames, and rows of the stacks, by place.

    ``launched`` is 1 where the launch was recorded, else 0.
    """

    kind: list[Count]
    launched: list[Count]
    python: list[Count]
    native: list[Count]
    nvtx: list[Count]
    launch: list[Place]
    frame: list[Place]


class KeptQuantity(Struct, frozen=True):
    """Hold a quantity that conditions name; see `flame.core.report.gate.quantities.Quantity`."""

    value: float
    unit: str
    whole: float | None = None


class KeptFinding(Struct, frozen=True):
    """Name a finding."""

    rule: str
    gpu: str
    severity: str
    title: str


class KeptDurations(Struct, frozen=True):
    """Hold how long the activities of the heaviest groups took.

    ``count`` activities of a ``group`` took ``ns``, of which 8 binary digits were kept.
    """

    group: list[Count]
    ns: list[Count]
    count: list[Count]


class KeptPart(Struct, frozen=True):
    """Hold what is compared of a run: all of it, or its iterations after the warm-up.

    ``total`` (ns) and ``count`` are those of the activities of each group, ``seconds`` how long
    the GPUs were looked at. ``durations`` are None where an earlier flame kept it.
    """

    total: list[Count]
    count: list[Count]
    seconds: float
    budget: dict[str, Count]
    quantities: dict[str, KeptQuantity]
    findings: list[KeptFinding]
    durations: KeptDurations | None = None


class KeptSteps(Struct, frozen=True):
    """Hold the iterations after the warm-up: ``period`` of each, and what each launched.

    ``total`` ns of a ``group`` were launched in a ``step``, a place among them; those of the
    heaviest groups alone.
    """

    period: list[Count]
    step: list[Count]
    group: list[Count]
    total: list[Count]


class KeptFacts(Struct, frozen=True):
    """Hold what tells whether a run can be compared; see `compare.comparable`."""

    gpus: Count
    models: list[str]
    graphs: Count
    nodes: Count
    serialized: bool
    recorded_by: list[str]
    duration: Count
    held: Count
    lost: list[str]


class KeptRunData(Struct, frozen=True):
    """Hold a run. ``iterations`` are the frames that stand for iterations."""

    frames: list[KeptFrame]
    stack_parent: list[Place]
    stack_frame: list[Place]
    groups: KeptGroups
    iterations: list[Count]
    whole: KeptPart
    steady: KeptPart | None
    steps: KeptSteps | None
    facts: KeptFacts


class KeptBase(Struct, frozen=True):
    """Hold the runs of a side."""

    flame_base: int
    version: str
    runs: list[KeptRunData]


def is_kept_base(path: Path) -> bool:
    """Tell by its content whether the file at ``path`` is a kept base."""
    try:
        with path.open("rb") as file:
            if file.read(len(GZIP)) != GZIP:
                return False
            file.seek(0)
            with gzip.open(file) as unpacked:
                return unpacked.read(len(_BEGINS)) == _BEGINS
    except (OSError, EOFError, ValueError, zlib.error):
        return False


def encode_base(runs: list[KeptRunData]) -> bytes:
    """Pack ``runs``; the same ones are the same bytes."""
    text = msgspec.json.encode(KeptBase(SCHEMA, __version__, runs))
    return gzip.compress(text, mtime=0)


def read_base(path: Path) -> KeptBase:
    """Read a kept base; InputError, in a line, where it is damaged or too new.

    Raises MemoryShortError, before it takes any, where there is too little memory.
    """
    text = _read_text(path)
    within_memory(path, _PER_BYTE * len(text), silent)
    try:
        version = msgspec.json.decode(text, type=_Head).flame_base
        if version > SCHEMA:
            raise InputError(f"{path}: was kept by a newer flame; install that, or keep it again")
        return msgspec.json.decode(text, type=KeptBase)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no kept base that can be read: {error}") from None


def _read_text(path: Path) -> bytes:
    """Read and unpack the JSON; InputError where it is more than a base of that size needs."""
    pieces, most = list[bytes](), _FREE + _MOST_PACKED * path.stat().st_size
    try:
        with open_binary(path) as file:
            while piece := file.read(_PIECE):
                pieces.append(piece)
                if file.tell() > most:
                    raise InputError(f"{path}: unpacks to more than any kept base: keep it again")
    except (OSError, PackedError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    return b"".join(pieces)


class _Head(Struct, frozen=True):
    flame_base: int
