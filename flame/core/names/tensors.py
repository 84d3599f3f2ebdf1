"""Write the shapes and types of tensors as people do."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from flame.core.names.dtypes import bytes_of

_T = TypeVar("_T")


def tensors_text(shapes: str) -> str:
    """Write the shapes of tensors as people do: ``16×2880, 2880×640``; scalars are left out."""
    sizes = ["×".join(map(str, shape)) for shape in _decoded(shapes, list[int]) if shape]
    return ", ".join(sizes) or shapes


def types_text(types: str) -> str:
    """Name the different types of tensors, ``BFloat16``; what is no tensor is left out."""
    names = [one.rpartition(":")[2] for one in _decoded(types, str) if bytes_of(one)]
    return ", ".join(dict.fromkeys(names))


def _decoded(text: str, of: type[_T]) -> list[_T]:
    try:
        return msgspec.json.decode(text, type=list[of])  # type: ignore[valid-type]
    except (ValueError, RecursionError):
        return []
