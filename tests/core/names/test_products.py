"""The least bytes of matrix products, and the names of types."""

from __future__ import annotations

import json
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.names.dtypes import bytes_of
from flame.core.names.products import least_bytes, tensors_text, types_text

sizes = st.integers(0, 5)
SIZES = {"float": 4, "c10::BFloat16": 2, "long int": 8, "bool": 1}


@given(sizes, sizes, sizes, sizes, st.lists(st.sampled_from(sorted(SIZES)), min_size=3, max_size=3))
def test_least_bytes_are_what_goes_in_and_comes_out(
    batch: int, rows: int, inner: int, columns: int, types: list[str]
) -> None:
    left, right, out = [rows, inner], [inner, columns], [rows, columns]
    made = {
        "aten::mm": [left, right],
        "aten::bmm": [[batch, *left], [batch, *right]],
        "aten::addmm": [[columns], left, right],
        "aten::baddbmm": [[batch, *out], [batch, *left], [batch, *right]],
        "aten::linear": [[batch, *left], [columns, inner], [columns]],
    }
    outputs = {"aten::mm": out, "aten::addmm": out}
    for operator, shapes in made.items():
        given_types = types[: len(shapes)]
        first = 1 if "add" in operator else 0
        moved = [prod(one) * SIZES[of] for one, of in zip(shapes, given_types, strict=True)]
        moved.append(prod(outputs.get(operator, [batch, *out])) * SIZES[given_types[first]])
        more = [*shapes, [], []], [*given_types, "Scalar", "Scalar"]
        told = least_bytes(operator, json.dumps(more[0]), json.dumps(more[1]))
        assert told == sum(moved), operator
        untyped = sum(map(prod, shapes)) + prod(outputs.get(operator, [batch, *out]))
        assert least_bytes(operator, json.dumps(shapes), "", "bf16") == 2 * untyped


@pytest.mark.parametrize(
    ("operator", "shapes", "types"),
    [
        ("aten::add", "[[2, 3], [3, 4]]", '["float", "float"]'),
        ("aten::mm", "[[2, 3], [4, 4]]", '["float", "float"]'),
        ("aten::mm", "[[2, 3]]", '["float"]'),
        ("aten::mm", "[[2, 3], [3, 4]]", '["float"]'),
        ("aten::mm", "[[2, 3], [3, 4]]", '["float", "Quaternion"]'),
        ("aten::mm", "[[2, 3], [3, 4]]", ""),
        ("aten::mm", "[[-2, 3], [3, -4]]", '["float", "float"]'),
        ("aten::mm", f"[[{1 << 60}, 3], [3, 4]]", '["float", "float"]'),
        ("aten::mm", "[[[2, 3]], [3, 4]]", '["float", "float"]'),
        ("aten::mm", "[[2, 3], [3", '["float", "float"]'),
        ("aten::bmm", "[[2, 3, 4], [3, 4, 5]]", '["float", "float"]'),
        ("aten::linear", "[[2, 3], [4, 5]]", '["float", "float"]'),
        ("aten::linear", "[[], []]", '["float", "float"]'),
    ],
)
def test_what_is_no_product_has_none(operator: str, shapes: str, types: str) -> None:
    assert least_bytes(operator, shapes, types) is None


def test_shapes_and_types_as_people_write_them() -> None:
    assert tensors_text("[[16, 2880], [2880, 640], []]") == "16×2880, 2880×640"
    assert tensors_text("[[") == "[["
    assert types_text('["c10::Half", "c10::Half", "Scalar", "float", ""]') == "Half, float"
    sizes_of = {"BFloat16": 2, "torch::Half": 2, "unsigned char": 1, "Double": 8, "fp8": 1}
    assert {name: bytes_of(name) for name in sizes_of} == sizes_of
    assert bytes_of("") is bytes_of("Scalar") is None
