"""Make frames of NVTX ranges: texts, registered strings, domains, categories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from flame.core.columns import I4, I8
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Frame, Kind
from flame.core.names.nvtx import KEPT_PREFIXES, RangeName, clean_range, strip_running
from flame.core.readers.nsys.context import NsysContext, pid_of, process_keys
from flame.core.readers.shared.row_ids import IdByKey, RowIds
from flame.core.readers.sqlite.numbering import Stripping, TextNumbers
from flame.core.readers.sqlite.source import NULL

TABLE = "NVTX_EVENTS"
CATEGORY, MARK, PUSH_POP, START_END, DOMAIN = 33, 34, 59, 60, 75  # ENUM_NVTX_EVENT_TYPE
GIL_TRACE, PYTHON_BACKTRACE = "GIL Trace", "Python Backtrace"
_PROFILERS_OWN = frozenset({GIL_TRACE, PYTHON_BACKTRACE})
"""Domains that nsys itself fills (python-gil, python-sampling); they do not annotate the code."""
_ROWS_AT_ONCE = 500


class RangeTexts:
    """Number the texts of ranges as recorded, and by their cleaned names. Code 0 is "no text"."""

    def __init__(self, clean: bool) -> None:
        self.numbers = TextNumbers(Stripping(strip_running, KEPT_PREFIXES) if clean else None)
        self.names: list[RangeName] = [RangeName("")]
        self._clean = clean
        self._codes: dict[RangeName, int] = {}

    def code(self, text: str) -> int:
        """Return the code of ``text``, new or known."""
        name = clean_range(text) if self._clean else RangeName(text)
        code = self._codes.setdefault(name, len(self.names))
        if code == len(self.names):
            self.names.append(name)
        return code

    def codes(self) -> I4:
        """Return the code of every number, and of `NO_TEXT` at the end, i4[n + 1]."""
        codes = [self.code(text.decode("utf-8", "replace")) for text in self.numbers]
        return np.array([*codes, 0], np.int32)


class RangeFrames:
    """Frames of ranges: each (text, domain, category) is looked up once."""

    def __init__(self, context: NsysContext, texts: RangeTexts, names: RangeNames) -> None:
        self.texts = texts
        self._context = context
        self._names = names
        self._registered: dict[str, int] = {}
        self._rows = RowIds(self.frame_id)
        self._frames: IdByKey[tuple[int, str, str]] = IdByKey(self._add)

    def text_code(self, text: int, text_id: int) -> int:
        """Return the code of an inline text, else of the registered string ``text_id``."""
        if text or text_id == NULL:
            return text
        key = str(text_id)
        if key not in self._registered:
            known = self._context.strings.get(key)
            name = f"[range with unknown name {text_id}]" if known is None else known
            self._registered[key] = self.texts.code(name)
        return self._registered[key]

    def look_up(self, keys: I8) -> I4:
        """Return the frame ids of ``keys``, i4[n].

        They begin with code of the text, id of the text, domain, category and thread.
        """
        text, text_id, domain, category, thread = keys.T[:5]
        return self._rows.look_up([text, text_id, domain, category, process_keys(thread)])

    def frame_id(self, text: int, text_id: int, domain: int, category: int, process: int) -> int:
        """Return the frame id of a range, or -1 for ranges that nsys itself records."""
        where = (pid_of(process), 0 if domain == NULL else domain)
        in_domain = self._names.domains.get(where, "")
        if in_domain in _PROFILERS_OWN:
            return -1
        in_category = self._names.categories.get((*where, category), "")
        return self._frames[self.text_code(text, text_id), in_domain, in_category]

    def _add(self, code: int, domain: str, category: str) -> int:
        name = self.texts.names[code]
        known = {
            "domain": domain,
            "category": category,
            "shapes": name.shapes,
            "detail": name.detail,
        }
        extra = tuple((key, value) for key, value in known.items() if value)
        return self._context.frames.add(Frame(Kind.NVTX, name.name, extra=extra))


@dataclass(frozen=True)
class RangeNames:
    """Names of domains by (pid, domain) and of categories by (pid, domain, category)."""

    domains: dict[tuple[int, int], str] = field(default_factory=dict)
    categories: dict[tuple[int, int, int], str] = field(default_factory=dict)


def read_names(context: NsysContext, rowids: list[I8]) -> RangeNames:
    """Read the names from the rows with these ``rowids``."""
    names = RangeNames()
    columns = ["eventType", "globalTid", "domainId", "category", "text", "textId"]
    condition = f"eventType IN ({CATEGORY}, {DOMAIN})"
    for row in rows_at(context, columns, rowids, condition):
        kind, *numbers, text, text_id = row
        name = text if isinstance(text, str) else context.text_of(text_id)
        thread, domain, category = map(int_or_zero, numbers)
        where = (pid_of(thread), domain)
        if kind == DOMAIN:
            names.domains[where] = name
        else:
            names.categories[(*where, category)] = name
    return names


def rows_at(
    context: NsysContext, columns: list[str], rowids: list[I8], otherwise: str
) -> Iterator[tuple[object, ...]]:
    """Yield the rows with these ``rowids``; where there are none to know, those that match."""
    known = np.concatenate([np.zeros(0, np.int64), *rowids])
    if (known == NULL).any():
        yield from context.source.rows(TABLE, columns, f"WHERE {otherwise}")
        return
    for first in range(0, len(known), _ROWS_AT_ONCE):
        wanted = ", ".join(map(str, known[first : first + _ROWS_AT_ONCE].tolist()))
        yield from context.source.rows(TABLE, columns, f"WHERE rowid IN ({wanted})")


def int_or_zero(value: object) -> int:
    """Return ``value`` where it is an integer, else 0."""
    return value if isinstance(value, int) else 0
