"""The shapes and types of tensors as people write them."""

from __future__ import annotations

from flame.core.names.tensors import bytes_of, tensors_text, types_text


def test_shapes_and_types_as_people_write_them() -> None:
    assert tensors_text("[[16, 2880], [2880, 640], []]") == "16×2880, 2880×640"
    assert tensors_text("[[") == "[["
    assert types_text('["c10::Half", "c10::Half", "Scalar", "float", ""]') == "Half, float"
    sizes_of = {"BFloat16": 2, "torch::Half": 2, "unsigned char": 1, "Double": 8, "fp8": 1}
    assert {name: bytes_of(name) for name in sizes_of} == sizes_of
    assert bytes_of("") is bytes_of("Scalar") is None
