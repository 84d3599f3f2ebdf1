"""Write the shapes and types of tensors as people do, and tell what an element is of its type."""

from __future__ import annotations

from typing import TypeVar

_NAMES = {
    1: "bool byte char int8 uint8 signed_char unsigned_char fp8 float8_e4m3fn float8_e5m2"
    " float8_e4m3fnuz float8_e5m2fnuz",
    2: "half float16 fp16 bfloat16 bf16 short int16 short_int",
    4: "float float32 fp32 int int32",
    8: "double float64 fp64 long int64 long_int complexfloat complex64",
    16: "complexdouble complex128",
}
_BYTES = {name: size for size, names in _NAMES.items() for name in names.split()}

_PRECISIONS = {
    "fp64": "double float64 fp64",
    "fp32": "float float32 fp32",
    "fp16": "half float16 fp16",
    "bf16": "bfloat16 bf16",
    "fp8": "fp8 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz",
}
_PRECISION = {name: title for title, names in _PRECISIONS.items() for name in names.split()}


def bytes_of(dtype: str) -> int | None:
    """Tell the bytes of an element: of ``BFloat16``, ``c10::Half``, ``long int``; None unknown."""
    return _BYTES.get(_plain(dtype))


def precision_of(dtype: str) -> str:
    """Name the floating-point type: ``bf16``, ``fp16``, ``fp8``, ``fp32``, ``fp64``; else empty."""
    return _PRECISION.get(_plain(dtype), "")


def _plain(dtype: str) -> str:
    return dtype.rpartition(":")[2].lower().replace(" ", "_")


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
    import msgspec

    try:
        return msgspec.json.decode(text, type=list[of])  # type: ignore[valid-type]
    except (ValueError, RecursionError):
        return []
