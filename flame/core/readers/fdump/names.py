"""What a dump's numbers are called: Python frames, ranges, API calls, threads, facts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8
from flame.core.frames import Frame, FrameBuilder, Kind
from flame.core.names import RangeName, clean_range
from flame.core.readers.fdump.chunks import Records
from flame.core.readers.fdump.ids import Ids, Made
from flame.core.readers.fdump.texts import LOST, Texts

DOMAIN, CATEGORY, THREAD, DEVICE, API = 1, 2, 3, 4, 5  # NameKind in dump.h


class Vocabulary:
    """Frames by the ids that a dump gives them."""

    def __init__(self, records: Records, frames: FrameBuilder, clean: bool) -> None:
        self.frames = frames
        self.texts = Texts(records)
        self._records = records
        self._clean = clean
        self._unknown = [frames.add(Frame(kind, LOST)) for kind in (Kind.PYTHON, Kind.NVTX)]
        self._items = [self._python_frames(), self._ranges()]

    @cached_property
    def _names(self) -> dict[tuple[int, int, int], str]:
        table = self._records.table("name", ("kind", "scope", "id", "text"))
        texts = self.texts.of(table["text"])
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        return {(kind, scope, number): texts[text] for kind, scope, number, text in rows}

    def name(self, kind: int, number: int, scope: int = 0) -> str:
        """What a number is called; empty where nothing says it."""
        return self._names.get((kind, scope, number), "")

    @cached_property
    def facts(self) -> dict[str, list[str]]:
        """What is known of the process, by key."""
        table = self._records.table("meta", ("key", "value"))
        texts = self.texts.of(*table.values())
        found: dict[str, list[str]] = {}
        for key, value in zip(*(column.tolist() for column in table.values()), strict=True):
            found.setdefault(texts[key], []).append(texts[value])
        return found

    def fact(self, key: str) -> str:
        """The last value of a key; empty without one."""
        return self.facts.get(key, [""])[-1]

    def frames_of(self, kind: I8, item: I8) -> I4:
        """Frames of nodes: kind 0 is a Python frame, 1 a range."""
        found = np.full(len(kind), self._unknown[0], np.int32)
        for number, items in enumerate(self._items):
            rows = np.flatnonzero(kind == number)
            found[rows] = items.of(item[rows])
        return found

    def range_frames(self, ids: I8) -> I4:
        """Frames of ranges by the ids of their names."""
        return self._items[1].of(ids)

    def _python_frames(self) -> _Items:
        table = self._records.table("frame", ("id", "function", "file", "line"))
        texts = self.texts.of(table["function"], table["file"])

        def make(function: int, file: int, line: int) -> int:
            name = texts[function] or "[function without a name]"
            return self.frames.add(Frame(Kind.PYTHON, name, texts[file], line))

        return _Items(table, make, self._unknown[0])

    def _ranges(self) -> _Items:
        table = self._records.table("range_name", ("id", "text", "domain", "category"))
        names: dict[RangeName, int] = {}
        codes = {
            number: names.setdefault(self._range_name(text), len(names))
            for number, text in self.texts.each(table["text"])
        }
        known = list(names)
        # Texts with running numbers are many, and few once they are cleaned.
        table["text"] = np.array([codes[text] for text in table["text"].tolist()], np.int64)

        def make(name: int, domain: int, category: int) -> int:
            return self._range(known[name], domain, category)

        return _Items(table, make, self._unknown[1])

    def _range_name(self, text: str) -> RangeName:
        return clean_range(text) if self._clean else RangeName(text)

    def _range(self, name: RangeName, domain: int, category: int) -> int:
        known = {
            "domain": self.name(DOMAIN, domain),
            "category": self.name(CATEGORY, category, domain),
            "shapes": name.shapes,
            "detail": name.detail,
        }
        extra = tuple((key, value) for key, value in known.items() if value)
        text = name.name or "[range without a name]"
        return self.frames.add(Frame(Kind.NVTX, text, extra=extra))


class _Items:
    """The frames of all records of a kind: ``make`` knows that of each row."""

    def __init__(self, table: dict[str, I8], make: Callable[..., int], unknown: int) -> None:
        ids, *columns = table.values()
        self._ids = Ids(ids, columns)
        frame = Made(make).rows([column[self._ids.rows] for column in columns])
        self._frame = np.append(frame, np.int32(unknown))

    def of(self, ids: I8) -> I4:
        """The frames of records by their ids, ``unknown`` where there is none."""
        return self._frame[self._ids.places(ids)]
