"""Read folded stacks, the text format of flamegraph.pl: a stack and its value on each line."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from flame.core.columns import I4, I8, distinct, sum_by
from flame.core.errors import InputError
from flame.core.lazy_regex import lazy_regex
from flame.core.model.meta import Meta
from flame.core.model.raw import Measure, RawStacks
from flame.core.options import LoadOptions, Progress
from flame.core.readers.shared.decimals import MAX_DECIMALS, NUMBER, DecimalNumbers, decimal_unit
from flame.core.readers.shared.packed_files import PackedError, open_binary, raw_position
from flame.core.readers.shared.stack_rows import DEEPEST, build_row_stacks
from flame.core.readers.stacks.folded_frames import ExactKeys, FoldedFrames, SameKeyError
from flame.core.readers.stacks.plain_lines import split_plain

# The frames of a batch live at the same time, as texts of 60 bytes each.
_BATCH = 1 << 20
_HEAD = 1 << 16
_LETTER = lazy_regex(rb"[A-Za-z_\x80-\xff]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_FRAMES = b"all"

# A comment begins with `#` and a space, or `#!`: `#1 main;f 3` is a stack.
_NOTHING = lazy_regex(rb"\s*(?:#(?:\s|!|\Z)|\Z)")

_Columns = tuple[tuple[str, str], ...]
"""Key and title of each number at the end of a line."""

_SAMPLES = ("samples", "samples")
_BEFORE = ("before", "samples before")


def is_folded(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` holds folded stacks.

    Most of its lines must be frames with ``;`` between them and a number. Where they are not, all
    must end in a number, and most must have a single word in front: other text does that rarely.
    """
    text = _decode_head(head)
    lines = _whole_lines(text)
    if b"\0" in text:
        return False
    if not lines:
        return b"\n" not in text and _may_be_stack(text)
    stacks = [line.rsplit(None, 1)[0] for line in lines if _is_stack(line)]
    if 2 * sum(b";" in stack for stack in stacks) > len(lines):
        return True
    return len(stacks) == len(lines) and 2 * sum(map(_is_word, stacks)) >= len(lines)


def _decode_head(head: bytes) -> bytes:
    """Return the beginning of a file as UTF-8, whatever its encoding, without byte order mark."""
    if head.startswith(_UTF16):
        head = codecs.getincrementaldecoder("utf-16")("replace").decode(head).encode()
    return head.removeprefix(codecs.BOM_UTF8)


def _whole_lines(text: bytes) -> list[bytes]:
    """Return the lines of a file's beginning that are no comments, but not a last one cut off."""
    lines = text.split(b"\n")
    if len(text) >= _HEAD // 2:  # what was UTF-16 has halved
        lines.pop()
    return [line for line in lines if not _NOTHING.match(line)]


def _is_stack(line: bytes) -> bool:
    """Return whether the line is something with a letter and a number."""
    words = line.rsplit(None, 1)
    return len(words) == 2 and bool(NUMBER.fullmatch(words[1]) and _LETTER.search(words[0]))


def _is_word(stack: bytes) -> bool:
    return len(stack.split()) == 1 and stack[-1:] not in b":=,"


def _may_be_stack(text: bytes) -> bool:
    """Return whether a line without an end may begin with frames, and not with JSON or code."""
    return text.count(b";") > 2 and not set(b"{}\"'") & set(text)


def read_folded(path: Path, options: LoadOptions, progress: Progress) -> RawStacks:
    """Read the folded stacks in the file at ``path``: one row per distinct stack.

    A line is frames joined by ``;``, white space, and a value: a whole number, or one with decimals
    (``30.5``, ``1e6``), of which 9 are kept, exactly. Lines that begin with ``#`` and white space
    are comments. Frames without a text are called ``[empty]``; at the end of a stack they are
    none, as for flamegraph.pl (py-spy ended stacks with ``;``). The stack ``all`` is the empty one,
    which our own exports write so, unless ``all`` begins other stacks. Of more than 10,000 frames
    the innermost are left out.

    Where every line ends in two numbers (difffolded.pl), the last is the value, and the other one
    is the measure ``before``. Lines that are none of this are left out, and counted in a warning.

    ``options`` make no difference. Raises InputError where no line is a stack, where the file is
    damaged or cut off, and where its values add up to 2**62 or more. ``progress`` is told of bytes
    on disk. Takes 8 bytes of memory per frame of every line, and 40 per frame and its name.
    """
    try:
        try:
            return _read_columns(path, progress, FoldedFrames)
        except SameKeyError:
            return _read_columns(path, progress, lambda: FoldedFrames(ExactKeys().__getitem__))
    except OverflowError:
        raise InputError(f"{path}: its values add up to more than 64 bits hold") from None
    except PackedError as error:
        raise InputError(f"{path}: damaged: {error}; compress or copy it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


class _NotDifferentialError(Exception):
    """A line with one number in a file that began with lines of two: read it again."""


_NewFrames = Callable[[], FoldedFrames]


def _read_columns(path: Path, progress: Progress, frames: _NewFrames) -> RawStacks:
    try:
        return _read(path, progress, frames())
    except _NotDifferentialError:
        return _read(path, progress, frames(), (_SAMPLES,))


def _read(
    path: Path, progress: Progress, frames: FoldedFrames, columns: _Columns | None = None
) -> RawStacks:
    lines: _LineCollector | None = None
    with open_binary(path) as file:
        size = path.stat().st_size
        for batch in _read_batches(file):
            progress("reading stacks", min(raw_position(file), size), size)
            lines = lines or _LineCollector(columns or _choose_columns(batch), frames)
            lines.add(batch)
    if not lines or not lines.stacks:
        raise InputError(f"{path}: no line is a stack and its value, such as: main;work 12")
    return lines.build(Meta(str(path), "folded"), partial(progress, "merging stacks", 0, 0))


def _choose_columns(batch: bytes) -> _Columns:
    """Choose two values per line if all end in two numbers, and differ without them.

    In other files numbers at the end of names (``layer 0``, ``layer 1``) tell stacks apart.
    """
    lines = [line for line in batch.split(b"\n") if not _NOTHING.match(line)]
    parts = [line.rsplit(None, 2) for line in lines]
    if not all(len(part) == 3 and NUMBER.fullmatch(part[1]) for part in parts):
        return (_SAMPLES,)
    distinct_stacks = len({part[0] for part in parts})
    return (_BEFORE, _SAMPLES) if distinct_stacks == len(parts) > 1 else (_SAMPLES,)


def _read_batches(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file's text as UTF-8, about a million bytes of whole lines at a time."""
    pending: list[bytes] = []
    for chunk in _read_chunks(file):
        whole, newline, rest = chunk.rpartition(b"\n")
        if newline:
            yield _spell_out(b"".join((*pending, whole)))
            pending.clear()
        pending.append(rest)
    last = b"".join(pending)
    if last:
        yield _spell_out(last)


def _spell_out(text: bytes) -> bytes:
    """Return ``text`` as UTF-8: bytes that are none in ASCII."""
    return text.decode("utf-8", "backslashreplace").encode()


def _read_chunks(file: BinaryIO) -> Iterator[bytes]:
    chunk = file.read(_BATCH)
    if chunk.startswith(_UTF16):
        decoder = codecs.getincrementaldecoder("utf-16")("backslashreplace")
        while chunk:
            yield decoder.decode(chunk).encode()
            chunk = file.read(_BATCH)
        yield decoder.decode(b"", True).encode()
    chunk = chunk.removeprefix(codecs.BOM_UTF8)
    while chunk:
        yield chunk
        chunk = file.read(_BATCH)


class _LineCollector:
    """Collects lines: their stacks, spelled in frame ids, and their values."""

    def __init__(self, columns: _Columns, frames: FoldedFrames) -> None:
        self.stacks = 0
        self._columns = columns
        self._values = [DecimalNumbers() for _ in columns]
        self._frames = frames
        self._spelled: list[I4] = [np.zeros(0, np.int32)]
        self._lengths: list[I8] = [np.zeros(0, np.int64)]
        self._line = 0
        self._strange: list[int] = []
        self._too_deep = 0

    def add(self, batch: bytes) -> None:
        """Add whole lines. Raises OverflowError and `_NotDifferentialError`."""
        plain = split_plain(batch) if len(self._columns) == 1 else None
        if plain is None or plain.lengths.max() > DEEPEST:
            self._add_lines(batch)
            return
        self._line += len(plain.values)
        self.stacks += len(plain.values)
        self._spelled.append(self._frames.ids(plain.stacks.split(b";")))
        self._lengths.append(plain.lengths)
        self._values[0].add_whole(plain.values)

    def _add_lines(self, batch: bytes) -> None:
        lines = batch.split(b"\n")
        parts = [line.rsplit(None, len(self._columns)) for line in lines]
        if not self._all_plain(batch, parts):
            parts = [part for part in map(self._check_line, lines, parts) if part]
        else:
            self._line += len(lines)
        if parts:
            stacks, *numbers = zip(*parts, strict=True)
            self._add_stacks([stack.rstrip(b";") for stack in stacks])
            for values, column in zip(self._values, numbers, strict=True):
                values.add(column)

    def _all_plain(self, batch: bytes, parts: Sequence[list[bytes]]) -> bool:
        """Return whether all lines are stacks and whole numbers: 40 % less time if short."""
        size = len(self._columns) + 1
        if batch.startswith(b"#") or b"\n#" in batch or set(map(len, parts)) != {size}:
            return False
        numbers = [number for part in parts for number in part[1:]]
        return b"".join(numbers).isdigit()

    def _check_line(self, line: bytes, part: list[bytes]) -> list[bytes] | None:
        """Return ``part`` if it is stack and numbers; note what is neither that nor a comment."""
        self._line += 1
        if _NOTHING.match(line):
            return None
        size = len(self._columns) + 1
        if len(part) == size and all(map(NUMBER.fullmatch, part[1:])):
            return part
        if size == 3 and len(part) > 1 and NUMBER.fullmatch(part[-1]):
            raise _NotDifferentialError
        self._strange.append(self._line)
        return None

    def _add_stacks(self, stacks: Sequence[bytes]) -> None:
        self.stacks += len(stacks)
        lengths = np.array([stack.count(b";") + 1 if stack else 0 for stack in stacks], np.int64)
        if lengths.max() > DEEPEST:
            self._too_deep += int((lengths > DEEPEST).sum())
            stacks = [b";".join(stack.split(b";", DEEPEST)[:DEEPEST]) for stack in stacks]
            lengths = np.minimum(lengths, DEEPEST)
        texts = b";".join(filter(None, stacks)).split(b";") if lengths.any() else []
        self._spelled.append(self._frames.ids(texts))
        self._lengths.append(lengths)

    def build(self, meta: Meta, tick: Callable[[], None]) -> RawStacks:
        """Build one row per distinct stack; ``tick`` is called now and then."""
        spelled, lengths = self._empty_stacks_of_all()
        frames = self._frames.build()
        stacks, stack = build_row_stacks(spelled, lengths, tick)
        del spelled, lengths
        rows, row = distinct(stack.astype(np.int64))
        return RawStacks(
            frames=frames,
            stacks=stacks,
            stack=rows.astype(np.int32),
            measures=self._measures(row, len(rows)),
            meta=meta,
            warnings=self._warnings(),
        )

    def _empty_stacks_of_all(self) -> tuple[I4, I8]:
        """Return all stacks; the frame ``all`` alone becomes the empty stack."""
        spelled, lengths = np.concatenate(self._spelled), np.concatenate(self._lengths)
        self._spelled.clear()
        self._lengths.clear()
        first = (np.cumsum(lengths) - lengths)[lengths > 0]
        says_none = spelled[first] == self._frames.find(_NO_FRAMES)
        alone = lengths[lengths > 0] == 1
        if not says_none.any() or (says_none & ~alone).any():
            return spelled, lengths
        keep = np.ones(len(spelled), bool)
        keep[first[says_none]] = False
        lengths[np.flatnonzero(lengths)[says_none]] = 0
        return spelled[keep], lengths

    def _measures(self, row: I8, rows: int) -> tuple[Measure, ...]:
        """Sum the values by row, the last column first."""
        measures = []
        for (key, title), numbers in zip(self._columns, self._values, strict=True):
            values, power = numbers.build()
            measures.append(Measure(key, title, decimal_unit(power), sum_by(row, values, rows)))
        return tuple(measures[::-1])

    def _warnings(self) -> list[str]:
        warnings = []
        if len(self._columns) > 1:
            warnings.append("two numbers on each line: shown is the last, the other is `before`")
        if self._strange:
            warnings.append(
                f"lines that are no stack and its value, left out: {len(self._strange):,}, "
                f"first: line {self._strange[0]:,}"
            )
        if self._too_deep:
            warnings.append(
                f"stacks of more than {DEEPEST:,} frames: {self._too_deep:,}, "
                "their innermost left out"
            )
        rounded = sum(numbers.rounded for numbers in self._values)
        if rounded:
            warnings.append(f"values rounded to {MAX_DECIMALS} decimals: {rounded:,}")
        return warnings
