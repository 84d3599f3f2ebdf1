"""Read NVTX ranges: names from text or registered strings, domains, categories, payloads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.columns import I4, Column
from flame.core.model.frames import Frame, Kind
from flame.core.model.raw import OPEN, RawRanges, TableBuilder
from flame.core.names.nvtx import RangeName, clean_range, payload_text
from flame.core.readers.nsys.context import NsysContext, pid_of, process_keys
from flame.core.readers.shared.row_ids import RowIds
from flame.core.readers.sqlite.source import NULL
from flame.core.units import format_counted

TABLE = "NVTX_EVENTS"
_CATEGORY, _PUSH_POP, _START_END, _DOMAIN = 33, 59, 60, 75  # ENUM_NVTX_EVENT_TYPE
_PROFILERS_OWN = frozenset({"GIL Trace", "Python Backtrace"})
"""Domains that nsys itself fills (python-gil, python-sampling); they do not annotate the code."""

_PAYLOADS = (
    "uint64Value",
    "int64Value",
    "doubleValue",
    "uint32Value",
    "int32Value",
    "floatValue",
)
_MAX_PAYLOADS = 2_000
_VOLATILE = (b"op_id", b"seq = ")


class _TextCodes(dict[bytes | None, int]):
    """Codes of range texts; equal cleaned names get one code. Code 0 is "no text"."""

    def __init__(self, clean: bool) -> None:
        super().__init__({None: 0})
        self.names: list[RangeName] = [RangeName("")]
        self._clean = clean
        self._codes: dict[RangeName, int] = {}

    def __missing__(self, raw: bytes) -> int:
        code = self.code(raw.decode("utf-8", "replace"))
        # A text with a running number never comes again: keeping it would only cost memory.
        if not (self._clean and any(mark in raw for mark in _VOLATILE)):
            self[raw] = code
        return code

    def code(self, text: str) -> int:
        """Return the code of ``text``, new or known."""
        name = clean_range(text) if self._clean else RangeName(text)
        code = self._codes.setdefault(name, len(self.names))
        if code == len(self.names):
            self.names.append(name)
        return code


class _RangeFrames:
    """Frames of ranges: each (text, domain, category) is looked up once."""

    def __init__(self, context: NsysContext) -> None:
        self.texts = _TextCodes(context.options.nvtx_names == "clean")
        self._context = context
        self._registered: dict[int, int] = {}
        self.domains, self._categories = _read_names(context)
        self.frames = RowIds(self.frame_id)

    def text_code(self, text: int, text_id: int) -> int:
        """Return the code of an inline text, else of the registered string ``text_id``."""
        if text or text_id == NULL:
            return text
        if text_id not in self._registered:
            known = self._context.strings.get(text_id)
            name = f"[range with unknown name {text_id}]" if known is None else known
            self._registered[text_id] = self.texts.code(name)
        return self._registered[text_id]

    def frame_id(self, text: int, text_id: int, domain: int, category: int, process: int) -> int:
        """Return the frame id of a range, or -1 for ranges that nsys itself records."""
        where = (pid_of(process), 0 if domain == NULL else domain)
        in_domain = self.domains.get(where, "")
        if in_domain in _PROFILERS_OWN:
            return -1
        name = self.texts.names[self.text_code(text, text_id)]
        known = {
            "domain": in_domain,
            "category": self._categories.get((*where, category), ""),
            "shapes": name.shapes,
            "detail": name.detail,
        }
        extra = tuple((key, value) for key, value in known.items() if value)
        return self._context.frames.add(Frame(Kind.NVTX, name.name, extra=extra))


def read_ranges(context: NsysContext) -> RawRanges:
    """Read all push/pop ranges; start/end ranges too where the options ask for them."""
    batches, vocabulary = TableBuilder(RawRanges), _RangeFrames(context)
    names = ["start", "end", "eventType", "globalTid", "textId", "domainId", "category"]
    wanted = [_PUSH_POP, _START_END] if context.options.nvtx_start_end else [_PUSH_POP]
    unknown = 0
    for chunk in context.source.chunks(TABLE, names, {"text": vocabulary.texts.__getitem__}):
        chunk |= {name: context.times(chunk[name]) for name in ("start", "end")}
        is_range = np.isin(chunk["eventType"], wanted)
        placed = (chunk["globalTid"] != NULL) & (chunk["start"] != NULL)
        rows = np.flatnonzero(is_range & placed)
        unknown += int(is_range.sum()) - len(rows)
        _add_ranges(
            context, batches, vocabulary, {name: column[rows] for name, column in chunk.items()}
        )
        context.advance("reading NVTX ranges", len(is_range))
    if unknown:
        name = format_counted(unknown, "NVTX range names", "NVTX ranges name")
        context.warnings.append(f"{name} no thread or no start: left out")
    _read_payloads(context, vocabulary)
    return batches.build()


def _add_ranges(
    context: NsysContext,
    batches: TableBuilder[RawRanges],
    vocabulary: _RangeFrames,
    chunk: dict[str, Column],
) -> None:
    frame = _frame_ids(vocabulary, chunk)
    kept = np.flatnonzero(frame >= 0)
    end = chunk["end"][kept]
    batches.add(
        start=chunk["start"][kept],
        end=np.where(end == NULL, OPEN, end),
        thread=context.thread_numbers(chunk["globalTid"][kept]),
        frame=frame[kept],
    )


def _frame_ids(vocabulary: _RangeFrames, chunk: dict[str, Column]) -> I4:
    names = ("text", "textId", "domainId", "category")
    return vocabulary.frames.look_up(
        [*(chunk[name] for name in names), process_keys(chunk["globalTid"])]
    )


def _read_names(
    context: NsysContext,
) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int, int], str]]:
    """Read names of domains by (pid, domain) and of categories by (pid, domain, category)."""
    domains: dict[tuple[int, int], str] = {}
    categories: dict[tuple[int, int, int], str] = {}
    for kind, thread, domain, category, text in _name_rows(context):
        where = (pid_of(thread), domain)
        if kind == _DOMAIN:
            domains[where] = text
        else:
            categories[(*where, category)] = text
    return domains, categories


def _name_rows(context: NsysContext) -> Iterator[tuple[int, int, int, int, str]]:
    names = ["eventType", "globalTid", "domainId", "category", "text", "textId"]
    if "eventType" not in context.source.columns(TABLE):
        return
    condition = f"WHERE eventType IN ({_CATEGORY}, {_DOMAIN})"
    for kind, thread, domain, category, text, text_id in context.source.rows(
        TABLE, names, condition
    ):
        name = text if isinstance(text, str) else context.text_of(text_id)
        yield (
            _int_or_zero(kind),
            _int_or_zero(thread),
            _int_or_zero(domain),
            _int_or_zero(category),
            name,
        )


def _int_or_zero(value: object) -> int:
    return value if isinstance(value, int) else 0


def _read_payloads(context: NsysContext, vocabulary: _RangeFrames) -> None:
    """Keep a few payloads per range as examples (they differ from instance to instance)."""
    have = context.source.columns(TABLE)
    present = [name for name in ("jsonText", "jsonTextId", *_PAYLOADS) if name in have]
    if not present or "eventType" not in have:
        return
    filled = " OR ".join(f"{name} IS NOT NULL" for name in present)
    names = ["text", "textId", "domainId", "category", "globalTid", "jsonText", "jsonTextId"]
    condition = (
        f"WHERE eventType IN ({_PUSH_POP}, {_START_END}) AND ({filled}) LIMIT {_MAX_PAYLOADS}"
    )
    for row in context.source.rows(TABLE, [*names, *_PAYLOADS], condition):
        _add_payload(context, vocabulary, row)


def _add_payload(context: NsysContext, vocabulary: _RangeFrames, row: tuple[object, ...]) -> None:
    text, text_id, domain, category, thread, json_text, json_id, *numbers = row
    code = vocabulary.texts.code(text) if isinstance(text, str) else 0
    registered = text_id if isinstance(text_id, int) else NULL
    process = _int_or_zero(thread) & ~0xFFFFFF
    frame = vocabulary.frame_id(
        code, registered, _int_or_zero(domain), _int_or_zero(category), process
    )
    json = json_text if isinstance(json_text, str) else context.text_of(json_id)
    values = [
        f"{name} {value}"
        for name, value in zip(_PAYLOADS, numbers, strict=True)
        if value is not None
    ]
    payload = payload_text(json) if json else ", ".join(values)
    if frame >= 0 and payload:
        context.frames.add_example(frame, payload)
