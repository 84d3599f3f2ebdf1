"""Read PC samples: in which functions of which cubins, at which instructions, and why."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, sum_by, unique_rows
from flame.core.model.frames import FrameBuilder
from flame.core.model.raw import RawPcSamples
from flame.core.model.stalls import is_not_issued, stall_of
from flame.core.options import Progress
from flame.core.readers.fdump.chunks import Chunks, DumpBytes, prefix_errors
from flame.core.readers.fdump.ids import LOST, OptionalRowIds
from flame.core.readers.fdump.records import Records
from flame.core.readers.fdump.vocabulary import STALL_REASON, DumpVocabulary
from flame.core.sass.module_lives import ENDS, LOADS, Cubins, ModuleLives

SAMPLES, MODULES, MODULE_ENDS = "sample", "module", "module_end"
_KEPT = ("function", "offset", "reason", "correlation", "samples")
FIELDS = ("crc", "context", "time", "span", *_KEPT)

_AT_ONCE = 1 << 20
_NOT_ISSUED, _NAMELESS = -2, -3
_COLUMNS = ("cubins", *_KEPT)

SampleColumns = dict[str, I8]


class DumpSamples(NamedTuple):
    """The PC samples of a dump, and the cubins one of which each function is of."""

    rows: RawPcSamples
    cubins: tuple[Cubins, ...]

    @property
    def functions_by_cubins(self) -> dict[Cubins, set[str]]:
        """Return the names of the sampled functions by the cubins they may be of."""
        functions: dict[Cubins, set[str]] = {}
        for cubins, name in zip(self.cubins, self.rows.functions, strict=True):
            functions.setdefault(cubins, set()).add(name)
        return functions


class SampleRows:
    """Collects records of samples; those that differ only in time are counted together.

    ``impossible`` samples are at no place that there can be, or name no function. ``modules`` are
    those that were loaded before the samples were taken, or more.
    """

    def __init__(self, vocabulary: DumpVocabulary) -> None:
        self.impossible = 0
        self.modules = ModuleLives()
        self._vocabulary = vocabulary
        self._known: SampleColumns = {name: np.zeros(0, np.int64) for name in _COLUMNS}
        self._new: list[SampleColumns] = []
        self._pending = 0

    def __len__(self) -> int:
        """Return how many samples differ in more than time, at least."""
        return len(self._known["samples"])

    def learn_modules(self, records: Records) -> None:
        """Add the modules among ``records``."""
        self.modules.learn(records.table(MODULES, LOADS), records.table(MODULE_ENDS, ENDS))

    def add(self, piece: SampleColumns) -> None:
        """Add records, columns `FIELDS`."""
        kept = {name: piece[name] for name in _KEPT}
        self._new.append({"cubins": self.modules.numbers(piece)} | kept)
        self._pending += len(piece["samples"])
        # Twice as many each time: what differs is not sorted again and again.
        if self._pending > max(_AT_ONCE, len(self._known["samples"])):
            self._join()

    def _join(self) -> None:
        parts = [self._known, *self._new]
        self._known = _sum_equal_rows(
            {name: np.concatenate([p[name] for p in parts]) for name in _COLUMNS}
        )
        self._new, self._pending = [], 0

    def build(self, process: int) -> DumpSamples | None:
        """Build the samples of the process with this index; None where there are none."""
        self._join()
        names: dict[str, int] = {}
        reasons: dict[str, int] = {}
        rows = dict(self._known)
        rows["function"] = self._functions(rows["function"], names)
        rows["reason"] = self._reasons(rows["reason"], reasons)
        impossible = (rows["offset"] < 0) | (rows["function"] == _NAMELESS)
        issued = (rows["reason"] != _NOT_ISSUED) & (rows["samples"] > 0)
        self.impossible = int(rows["samples"][impossible & issued].sum())
        kept = issued & ~impossible
        if not kept.any():
            return None
        rows = _sum_equal_rows({name: column[kept] for name, column in rows.items()})
        return self._build_table(rows, process, tuple(names), tuple(reasons))

    def _build_table(
        self, rows: SampleColumns, process: int, names: tuple[str, ...], reasons: tuple[str, ...]
    ) -> DumpSamples:
        first, function = unique_rows([rows["cubins"], rows["function"]])
        numbers = rows["function"][first].tolist()
        table = RawPcSamples(
            process=np.full(len(function), process, np.int32),
            function=function.astype(np.int32),
            offset=rows["offset"],
            reason=rows["reason"].astype(np.int32),
            correlation=rows["correlation"],
            samples=rows["samples"],
            functions=tuple(names[number] for number in numbers),
            codes=(None,) * len(first),
            reasons=reasons,
        )
        cubins = (self.modules.cubins[number] for number in rows["cubins"][first].tolist())
        return DumpSamples(table, tuple(cubins))

    def _functions(self, ids: I8, names: dict[str, int]) -> I8:
        """Number functions by name: a name that the dump has twice has one number."""
        texts = self._vocabulary.texts.look_up(ids)

        def number(function: int) -> int:
            name = texts[function]
            return names.setdefault(name, len(names)) if name not in ("", LOST) else _NAMELESS

        return OptionalRowIds(number).look_up([ids]).astype(np.int64)

    def _reasons(self, ids: I8, keys: dict[str, int]) -> I8:
        def number(reason: int) -> int:
            name = self._vocabulary.name_of(STALL_REASON, reason) or f"reason {reason}"
            return (
                _NOT_ISSUED
                if is_not_issued(name)
                else keys.setdefault(_reason_key(name), len(keys))
            )

        return OptionalRowIds(number).look_up([ids]).astype(np.int64)


def _reason_key(name: str) -> str:
    return stall_of(name).key


def _sum_equal_rows(rows: SampleColumns) -> SampleColumns:
    """Merge ``rows`` that differ only in how many samples they count."""
    first, kind = unique_rows([rows[name] for name in _COLUMNS if name != "samples"])
    return {name: column[first] for name, column in rows.items()} | {
        "samples": sum_by(kind, rows["samples"], len(first))
    }


def add_codes(
    samples: DumpSamples, folder: Path, progress: Progress, *, cache: bool = True
) -> tuple[RawPcSamples, list[str]]:
    """Add the code that ``folder`` has to samples, and return warnings about functions without.

    The ``cache`` keeps what has to be disassembled.
    """
    from flame.core.sass.disassembly import find_codes

    codes, warnings = find_codes(folder, samples.functions_by_cubins, progress, cache=cache)
    keys = zip(samples.cubins, samples.rows.functions, strict=True)
    return replace(samples.rows, codes=tuple(codes.get(key) for key in keys)), warnings


def read_sampled_functions(dump: Path) -> dict[Cubins, set[str]]:
    """Read the names of a dump's sampled functions, by the cubins they may be of.

    Raises InputError where it is no dump.
    """
    with prefix_errors(dump), closing(DumpBytes(dump)) as data:
        chunks = Chunks(data)
        chunks.update(beyond_tail=True)
        if not chunks.count(SAMPLES):
            return {}
        records = chunks.records()
        chunks.update(beyond_tail=True)  # what they refer to, if the dump still grows
        latest = chunks.records()
        vocabulary = DumpVocabulary(FrameBuilder(), clean=False)
        vocabulary.learn(latest)
        rows = SampleRows(vocabulary)
        rows.learn_modules(latest)
        for piece in records.columns(SAMPLES, FIELDS):
            rows.add(piece)
        samples = rows.build(0)
    return samples.functions_by_cubins if samples else {}
