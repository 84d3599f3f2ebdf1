"""Find the numbers of many names at once: names that differ only in digits are judged once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flame.core.columns import I8, Bool, Column, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.names.numbers import own_numbers

MOST_NUMBERS = 16
"""Numbers in a name: they are columns, and a file may have names of a megabyte."""

_BATCH = 1 << 20
"""Characters that are looked at together: those of a batch take some 20 bytes each."""

_ZERO = ord("0")
_EXACT_DIGITS = 18
"""Digits of a number that fits 63 bits with a 1 before it."""


@dataclass(frozen=True, eq=False)
class NumberedNames:
    """Hold some of many names as what they are without their numbers, and these.

    ``name`` i8[n] are their places among all; ``text`` i8[n] is equal for names that differ in
    nothing but numbers; ``numbers`` i8[n, `MOST_NUMBERS` at most] has equal values for numbers of
    equal digits, and -1 behind the last one.
    """

    name: I8
    text: I8
    numbers: I8


def split_alike(names: Sequence[str], fewest: int) -> NumberedNames:
    """Split as `split_numbers` does those of ``names`` of which ``fewest`` differ only in digits.

    Names without a number, and those with more than `MOST_NUMBERS`, are left out.
    """
    ids: dict[str, int] = {}
    shape = _number_shapes(names, ids)
    own = _OwnNumbers(shape, list(ids), fewest)
    wanted = np.flatnonzero(own.wanted[shape])
    long: dict[str, int] = {}
    texts, counts, values = [shape[:0]], [shape[:0]], [shape[:0]]
    for some in _batches(names, wanted):
        runs = _DigitRuns([names[at] for at in some.tolist()])
        is_own = own.of_runs(shape[some], runs)
        texts.append(_number_texts(runs, is_own, shape[some], ids))
        counts.append(np.bincount(runs.name[is_own], minlength=len(some)))
        values.append(runs.values(is_own, long))
    columns = _as_columns(np.concatenate(counts), np.concatenate(values))
    return NumberedNames(wanted, np.concatenate(texts), columns)


def _batches(names: Sequence[str], wanted: I8) -> Iterator[I8]:
    """Divide ``wanted``, places in ``names``, by the length of these."""
    size = np.fromiter(map(len, names), np.int64, len(names))
    batch = np.cumsum(size[wanted] + 1) // _BATCH
    yield from np.split(wanted, np.flatnonzero(batch[1:] != batch[:-1]) + 1)


def _number_shapes(names: Sequence[str], ids: dict[str, int]) -> I8:
    """Number what ``names`` are with 0 for all digits in turn, in ``ids``; -1: there are none."""
    shape = np.full(len(names), -1, np.int64)
    for some in _batches(names, np.arange(len(names))):
        runs = _DigitRuns([names[at] for at in some.tolist()])
        have = np.bincount(runs.name, minlength=len(some)) > 0
        shapes = runs.with_zeros(np.ones(len(runs.name), bool), have)
        shape[some[have]] = [ids.setdefault(one, len(ids)) for one in shapes]
    return shape


def _number_texts(runs: _DigitRuns, is_own: Bool, shape: I8, ids: dict[str, int]) -> I8:
    """Number what each name is with 0 for its own numbers; most are their shapes then."""
    text, others = shape.copy(), np.zeros(len(shape), bool)
    others[runs.name[~is_own]] = True
    texts = runs.with_zeros(is_own, others)
    text[others] = [ids.setdefault(one, len(ids)) for one in texts]
    return text


def _as_columns(counts: I8, values: I8) -> I8:
    """Lay out ``values``, so many of each name as ``counts`` says."""
    columns = np.full((len(counts), counts.max(initial=0)), -1)
    columns[np.arange(columns.shape[1]) < counts[:, None]] = values
    return columns


class _OwnNumbers:
    """Which runs of digits are numbers, by shape.

    ``wanted`` (bool[shapes + 1], the last for none) are those of ``fewest`` names at least that
    have some.
    """

    def __init__(self, shape: I8, texts: Sequence[str], fewest: int) -> None:
        self.wanted = np.zeros(len(texts) + 1, bool)
        self._first = np.zeros(len(texts), np.int64)
        owns: list[bool] = []
        many = np.bincount(shape[shape >= 0], minlength=len(texts)) >= fewest
        for one in np.flatnonzero(many).tolist():
            own = own_numbers(texts[one])
            self.wanted[one] = 0 < sum(own) <= MOST_NUMBERS
            self._first[one] = len(owns)
            owns += own
        self._own = np.array(owns, bool)

    def of_runs(self, shape: I8, runs: _DigitRuns) -> Bool:
        """Tell which of ``runs``, of names of ``shape``, are numbers."""
        of_run = np.arange(len(runs.name)) - np.searchsorted(runs.name, runs.name)
        own: Bool = self._own[self._first[shape[runs.name]] + of_run]
        return own


class _DigitRuns:
    """The runs of digits in names: ``name`` i8[n] is the place of the name that has each."""

    def __init__(self, names: Sequence[str]) -> None:
        self._chars = _code_points("\0".join(["", *names, ""]))
        size = np.fromiter(map(len, names), np.int64, len(names))
        self._size, self._start = size, np.cumsum(size + 1) - size
        digit = _digits(self._chars) <= 9
        edges = np.flatnonzero(digit[1:] != digit[:-1]) + 1
        self._begin, self._end = edges[::2], edges[1::2]
        self.name: I8 = np.searchsorted(self._start, self._begin, "right") - 1

    def with_zeros(self, runs: Bool, names: Bool) -> list[str]:
        """Make those of ``names`` anew, each with a 0 in place of every one of ``runs``."""
        begin, end = self._begin[runs], self._end[runs]
        inside = np.zeros(len(self._chars), np.int8)
        inside[begin + 1] += 1
        inside[end] -= 1
        chars = self._chars.copy()
        chars[begin] = _ZERO
        text = _text(chars[np.cumsum(inside, dtype=np.int8) == 0])
        less = sum_by(self.name[runs], end - begin - 1, len(self._size))
        start, size = self._start - (np.cumsum(less) - less), self._size - less
        bounds = zip(start[names].tolist(), (start + size)[names].tolist(), strict=True)
        return [text[first:last] for first, last in bounds]

    def values(self, runs: Bool, long: dict[str, int]) -> I8:
        """Tell ``runs`` apart by their digits, i8[runs]; ``long`` numbers those of many digits."""
        begin, size = self._begin[runs], self._end[runs] - self._begin[runs]
        value = np.ones(len(begin), np.int64)
        for digit in range(min(int(size.max(initial=0)), _EXACT_DIGITS)):
            some = np.flatnonzero(size > digit)
            value[some] = 10 * value[some] + _digits(self._chars[begin[some] + digit])
        for at in np.flatnonzero(size > _EXACT_DIGITS).tolist():
            digits = _text(self._chars[begin[at] : begin[at] + size[at]])
            value[at] = -3 - long.setdefault(digits, len(long))  # -1 and -2 say something else
        return value


def _digits(chars: Column) -> Column:
    """The value of each digit; more than 9 for other characters."""
    above: Column = chars - chars.dtype.type(_ZERO)
    return above


def _code_points(text: str) -> Column:
    """The characters of ``text``, u1 or u4."""
    if text.isascii():
        return np.frombuffer(text.encode(), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _text(chars: Column) -> str:
    """The text of characters as `_code_points` gives them."""
    encoding = "ascii" if chars.itemsize == 1 else "utf-32-le"
    return chars.tobytes().decode(encoding, "surrogatepass")
