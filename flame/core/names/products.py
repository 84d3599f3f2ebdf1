"""Tell how many bytes a matrix product moves at least, from the shapes and types it was given."""

from __future__ import annotations

from math import prod
from typing import NamedTuple, TypeVar

from flame.core.names.dtypes import bytes_of

PRODUCTS = frozenset({"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::linear"})
"""Operators that multiply matrices, by PyTorch's names."""

_LARGEST = 1 << 50
"""More than any matrix has; what is larger is damage."""

Shape = list[int]
_T = TypeVar("_T")


class _Product(NamedTuple):
    """Tensors that go in, and what comes out, which is of the type of tensor ``left``."""

    inputs: list[Shape]
    output: Shape
    left: int


def least_bytes(operator: str, shapes: str, types: str, dtype: str = "") -> int | None:
    """Tell how many bytes go in and come out; None where that is not known.

    ``shapes`` and ``types`` are those of its arguments as PyTorch writes them: ``[[2, 3], [3, 4]]``
    and ``["float", "float"]``. Where there are no types all are taken for ``dtype``.
    """
    product = _product(operator, _decoded(shapes, Shape))
    if product is None:
        return None
    given = _decoded(types, str) if types else [dtype] * len(product.inputs)
    sizes = [bytes_of(one) for one in given[: len(product.inputs)]]
    if len(sizes) < len(product.inputs):
        return None
    amounts = [*map(prod, product.inputs), prod(product.output)]
    whole = 0
    for amount, size in zip(amounts, [*sizes, sizes[product.left]], strict=True):
        if not 0 <= amount <= _LARGEST or (size is None and amount):
            return None
        whole += amount * (size or 0)
    return whole


def tensors_text(shapes: str) -> str:
    """Write the shapes of tensors as people do: ``16×2880, 2880×640``; scalars are left out."""
    sizes = ["×".join(map(str, shape)) for shape in _decoded(shapes, Shape) if shape]
    return ", ".join(sizes) or shapes


def types_text(types: str) -> str:
    """Name the different types of tensors, ``BFloat16``; what is no tensor is left out."""
    names = [one.rpartition(":")[2] for one in _decoded(types, str) if bytes_of(one)]
    return ", ".join(dict.fromkeys(names))


def _product(operator: str, shapes: list[Shape]) -> _Product | None:
    """Tell what goes in and comes out; None where the shapes are not those of such a product."""
    if operator == "aten::linear":
        return _linear(shapes)
    added = operator in ("aten::addmm", "aten::baddbmm")
    inputs = shapes[: 2 + added]
    if operator not in PRODUCTS or len(inputs) < 2 + added or min(map(_least, inputs)) < 0:
        return None
    left, right = inputs[-2:]
    deep = 3 if operator in ("aten::bmm", "aten::baddbmm") else 2
    fits = len(left) == len(right) == deep and left[-1] == right[-2] and left[:-2] == right[:-2]
    return _Product(inputs, [*left[:-1], right[-1]], len(inputs) - 2) if fits else None


def _linear(shapes: list[Shape]) -> _Product | None:
    inputs = shapes[:2] if len(shapes) < 3 or not shapes[2] else shapes[:3]
    if len(inputs) < 2 or min(map(_least, inputs)) < 0:
        return None
    left, weight = inputs[:2]
    fits = len(weight) == 2 and left[-1:] == weight[-1:]
    return _Product(inputs, [*left[:-1], weight[0]], 0) if fits else None


def _least(shape: Shape) -> int:
    return min(shape, default=0)


def _decoded(text: str, of: type[_T]) -> list[_T]:
    import msgspec

    try:
        return msgspec.json.decode(text, type=list[of])  # type: ignore[valid-type]
    except (ValueError, RecursionError):
        return []
