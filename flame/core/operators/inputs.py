"""Read what was recorded of an operator's inputs: shapes, types, strides and plain values."""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from flame.core.lazy_regex import lazy_regex
from flame.core.names.tensors import bytes_of, precision_of

LARGEST = 1 << 50
"""More elements than any tensor has; what is larger is damage."""

_NUMBER = lazy_regex(r"-?\d{1,18}")

Shape = tuple[int, ...]


class NoFormulaError(Exception):
    """Say that the inputs are not those that the formula of an operator is for."""


class OperatorInputs(NamedTuple):
    """Hold the inputs of an operator by place, as its schema lists them.

    ``shapes`` and ``strides`` are lists of numbers, for lists of tensors lists of these; ``types``
    and ``values`` texts. All but shapes may be shorter, or empty: they were not recorded. ``dtype``
    is what tensors are where no types were recorded, empty where nobody says.
    """

    shapes: list[object]
    types: list[object]
    strides: list[object]
    values: list[object]
    dtype: str = ""

    def shape(self, place: int, *dimensions: int) -> Shape:
        """Get the shape of a tensor; NoFormulaError unless it has one of so many ``dimensions``."""
        found = self.shapes[place] if place < len(self.shapes) else None
        if not isinstance(found, list) or (dimensions and len(found) not in dimensions):
            raise NoFormulaError
        sizes = tuple(one for one in found if type(one) is int and 0 <= one <= LARGEST)
        if len(sizes) != len(found) or prod(sizes) > LARGEST:
            raise NoFormulaError
        return sizes

    def is_given(self, place: int) -> bool:
        """Whether there is a tensor at ``place`` with anything in it: empty ones stand for none."""
        found = self.shapes[place] if place < len(self.shapes) else None
        return bool(found) and found != [0]

    def precision(self, *places: int) -> str:
        """Name the type that the tensors at ``places`` are of; empty if unknown, or not only one.

        See `precision_of`.
        """
        found = {precision_of(self._type(place)) for place in places}
        return found.pop() if len(found) == 1 else ""

    def bytes_of_element(self, place: int) -> int | None:
        """Tell the size of an element of a tensor; None where its type is not known."""
        return bytes_of(self._type(place))

    def distinct(self, place: int) -> int:
        """Count the elements of a tensor that are memory of their own: expanded ones are not."""
        sizes = self.shape(place)
        steps = self.strides[place] if place < len(self.strides) else None
        if not isinstance(steps, list) or len(steps) != len(sizes):
            return prod(sizes)
        return prod(size for size, step in zip(sizes, steps, strict=True) if step != 0 or not size)

    def numbers(self, place: int) -> tuple[int, ...]:
        """Get a list of numbers such as ``[2, 2]``; NoFormulaError where it was not recorded."""
        return tuple(map(int, _NUMBER.findall(self._value(place))))

    def flag(self, place: int) -> bool:
        """Get ``True`` or ``False``; NoFormulaError where neither was recorded."""
        value = self._value(place)
        if value not in _FLAGS:
            raise NoFormulaError
        return _FLAGS[value]

    def flags(self, place: int) -> tuple[bool, ...]:
        """Get a list such as ``[True, True, False]``; NoFormulaError where it was not recorded."""
        words = self._value(place).strip("[] ").replace(",", " ").split()
        if any(word not in _FLAGS for word in words):
            raise NoFormulaError
        return tuple(_FLAGS[word] for word in words)

    def _value(self, place: int) -> str:
        found = self.values[place] if place < len(self.values) else None
        if not isinstance(found, str) or not found:
            raise NoFormulaError
        return found

    def _type(self, place: int) -> str:
        if not self.types:
            return self.dtype
        found = self.types[place] if place < len(self.types) else ""
        return found if isinstance(found, str) else ""


_FLAGS = {"True": True, "true": True, "1": True, "False": False, "false": False, "0": False}


def read_inputs(
    shapes: str, types: str = "", strides: str = "", values: str = "", dtype: str = ""
) -> OperatorInputs:
    """Read inputs from the texts that were recorded, JSON lists; what is none of these is empty."""
    return OperatorInputs(
        _number_lists(shapes), _decoded(types), _number_lists(strides), _decoded(values), dtype
    )


_TOKEN = lazy_regex(r"[\[\]]|-?[0-9]{1,18}+|[\s,]++|.", re.ASCII | re.DOTALL)


def _number_lists(text: str) -> list[object]:
    """Read a list of numbers and of lists of these; empty where it is another text.

    No JSON decoder: what reads exports of Nsight Systems does without one, which takes time to
    import.
    """
    open_lists: list[list[object]] = [[]]
    for token in map(re.Match.group, _TOKEN.finditer(text)):
        if token == "[":
            open_lists.append([])
        elif token == "]" and len(open_lists) > 1:
            closed = open_lists.pop()
            open_lists[-1].append(closed)
        elif token[-1].isdecimal():
            open_lists[-1].append(int(token))
        elif not (token.isspace() or "," in token):
            return []
    outer = open_lists[0]
    whole = outer[0] if len(open_lists) == len(outer) == 1 else None
    return whole if isinstance(whole, list) else []


def _decoded(text: str) -> list[object]:
    if not text:
        return []
    import msgspec

    try:
        return msgspec.json.decode(text, type=list[object])
    except (ValueError, RecursionError):
        return []
