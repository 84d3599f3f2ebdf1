"""Resolve the ids of a dump: names of API calls and threads, facts, frames of Python and ranges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flame.core.columns import I4, I8
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.names.nvtx import RangeName, clean_range
from flame.core.readers.fdump.ids import ABSENT, LOST, DumpTextTable, IdTable, OptionalRowIds
from flame.core.readers.fdump.layout import TEXT
from flame.core.readers.fdump.records import Records

_KEYS = (TEXT, "name", "meta", "frame", "range_name")
# NameKind in dump.h
DOMAIN, CATEGORY, THREAD, DEVICE, API, STALL_REASON = 1, 2, 3, 4, 5, 6
DEVICE_UUID = 9


class DumpVocabulary:
    """Frames and names by the ids that a dump gives them, as far as they have been learnt."""

    def __init__(self, frames: FrameBuilder, clean: bool) -> None:
        self.frames = frames
        self.texts = DumpTextTable()
        self.facts: dict[str, list[str]] = {}
        self._names: dict[str, tuple[int, str]] = {}
        self._clean = clean
        unknown = [frames.add(Frame(kind, LOST)) for kind in (Kind.PYTHON, Kind.NVTX)]
        self._python, self._ranges = map(_FramesById, unknown)

    def __len__(self) -> int:
        """Return how many names there are for numbers."""
        return len(self._names)

    def learn(self, records: Records) -> None:
        """Add names, facts and frames among ``records``; all they refer to is there, or known."""
        if not any(map(records.pieces, _KEYS)):
            return
        self.texts.learn(records)
        self._learn_names(records)
        self._learn_facts(records)
        self._learn_python(records)
        self._learn_ranges(records)

    def learn_facts(self, records: Records) -> None:
        """Add facts alone."""
        self.texts.learn(records)
        self._learn_facts(records)

    def _learn_names(self, records: Records) -> None:
        table = records.table("name", ("kind", "scope", "id", "text"))
        texts = self.texts.look_up(table["text"])
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        for kind, scope, number, text in rows:
            self._names[_name_key(kind, scope, number)] = kind, texts[text]

    def _learn_facts(self, records: Records) -> None:
        table = records.table("meta", ("key", "value"))
        texts = self.texts.look_up(*table.values())
        rows = list(zip(*(column.tolist() for column in table.values()), strict=True))
        # What is said again and again is kept where it comes last.
        for key, value in reversed(dict.fromkeys(reversed(rows))):
            self.facts.setdefault(texts[key], []).append(texts[value])

    def name_of(self, kind: int, number: int, scope: int = 0) -> str:
        """Return the name of a number; empty where it has none."""
        _, name = self._names.get(_name_key(kind, scope, number), (kind, ""))
        return name

    def has_names(self, kind: int) -> bool:
        """Tell whether anything of this kind has a name."""
        return any(kind == known for known, _ in self._names.values())

    def has_domain(self, name: str) -> bool:
        """Tell whether a domain of NVTX is called ``name``."""
        return (DOMAIN, name) in self._names.values()

    def last_fact(self, key: str) -> str:
        """Return the last value of a fact; empty without one."""
        return self.facts.get(key, [""])[-1]

    def node_frames(self, kind: I8, item: I8) -> I4:
        """Return the frames of nodes: kind 0 is a Python frame, 1 a range."""
        frames = np.full(len(kind), self._python.unknown, np.int32)
        for number, items in enumerate((self._python, self._ranges)):
            rows = np.flatnonzero(kind == number)
            frames[rows] = items.look_up(item[rows])
        return frames

    def range_frames(self, ids: I8) -> I4:
        """Return the frames of ranges by the ids of their names."""
        return self._ranges.look_up(ids)

    def _learn_python(self, records: Records) -> None:
        table = records.table("frame", ("id", "function", "file", "line"))
        texts = self.texts.look_up(table["function"], table["file"])

        def make(function: int, file: int, line: int) -> int:
            name = texts[function] or "[function without a name]"
            return self.frames.add(Frame(Kind.PYTHON, name, texts[file], line))

        self._python.learn(table, make)

    def _learn_ranges(self, records: Records) -> None:
        table = records.table("range_name", ("id", "text", "domain", "category"))
        names: dict[RangeName, int] = {}
        codes = {
            number: names.setdefault(self._range_name(text), len(names))
            for number, text in self.texts.look_up_each(table["text"])
        }
        known = list(names)
        # Texts with running numbers are many, and few once they are cleaned.
        table["text"] = np.array([codes[text] for text in table["text"].tolist()], np.int64)

        def make(name: int, domain: int, category: int) -> int:
            return self._range_frame(known[name], domain, category)

        self._ranges.learn(table, make)

    def _range_name(self, text: str) -> RangeName:
        return clean_range(text) if self._clean else RangeName(text)

    def _range_frame(self, name: RangeName, domain: int, category: int) -> int:
        known = {
            "domain": self.name_of(DOMAIN, domain),
            "category": self.name_of(CATEGORY, category, domain),
            "shapes": name.shapes,
            "detail": name.detail,
        }
        extra = tuple((key, value) for key, value in known.items() if value)
        text = name.name or "[range without a name]"
        return self.frames.add(Frame(Kind.NVTX, text, extra=extra))


class _FramesById:
    """The frames of all records of a kind by id, ``unknown`` where there is none."""

    def __init__(self, unknown: int) -> None:
        self.unknown = unknown
        self._frames = IdTable()

    def learn(self, table: dict[str, I8], make: Callable[..., int]) -> None:
        """Add the records in ``table``; ``make`` adds the frame of a row without its id."""
        ids, *columns = table.values()
        self._frames.learn(ids, OptionalRowIds(make).look_up(columns).astype(np.int64))

    def look_up(self, ids: I8) -> I4:
        """Return the frames of records by their ids."""
        frame = self._frames.look_up(ids)
        return np.where(frame == ABSENT, self.unknown, frame).astype(np.int32)


def _name_key(kind: int, scope: int, number: int) -> str:
    # A file can choose numbers whose hashes collide; those of texts have a secret in Python.
    return f"{kind} {scope} {number}"
