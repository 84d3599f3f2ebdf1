"""What operators compute and move: shapes, types, strides and values decide, or nothing does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.frame import Frame, Kind
from flame.core.operators.cost import Cost
from flame.core.operators.formulas import OPERATORS, cost_of
from flame.core.operators.frame_cost import frame_cost, sized_frames
from flame.core.operators.inputs import read_inputs
from tests.support.tiers import examples

BF16 = "c10::BFloat16"


def cost(
    name: str, shapes: Any, types: Any = None, strides: Any = None, values: Any = None
) -> Cost | None:
    texts = ("" if one is None else json.dumps(one) for one in (shapes, types, strides, values))
    return cost_of(f"aten::{name}", read_inputs(*texts))


def test_a_product_reads_its_matrices_and_writes_the_result() -> None:
    found = cost("mm", [[3, 4], [4, 5]], [BF16, BF16])
    assert found == Cost(2 * 3 * 4 * 5, 2 * (12 + 20 + 15), "bf16")


def test_what_is_expanded_is_read_once() -> None:
    types, shapes = ["float"] * 3, [[3, 5], [3, 4], [4, 5]]
    dense = cost("addmm", shapes, types, [[5, 1], [4, 1], [5, 1]])
    expanded = cost("addmm", shapes, types, [[0, 1], [4, 1], [5, 1]])
    assert dense is not None and expanded is not None
    assert dense.flops == expanded.flops == 120
    assert (dense.bytes, expanded.bytes) == (4 * (15 + 12 + 20 + 15), 4 * (5 + 12 + 20 + 15))
    # Without strides tensors are taken for dense; a bias is as long as it is.
    assert cost("addmm", [[5], [3, 4], [4, 5], [], []], types) == expanded


def test_flops_need_no_types_but_bytes_do() -> None:
    assert cost("bmm", [[2, 3, 4], [2, 4, 5]]) == Cost(240, None, "")
    assert cost("bmm", [[2, 3, 4], [2, 4, 5]], [BF16, "mystery"]) == Cost(240, None, "")
    mixed = cost("mm", [[3, 4], [4, 5]], ["float", BF16])
    assert mixed is not None and mixed.precision == "" and mixed.bytes == 4 * 12 + 2 * (20 + 15)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("mm", [[3, 4], [5, 6]]),
        ("mm", [[3, 4]]),
        ("mm", [[2, 3, 4], [4, 5]]),
        ("mm", [[3, -4], [-4, 5]]),
        ("mm", [[3, "4"], [4, 5]]),
        ("mm", [[[3, 4]], [4, 5]]),
        ("mm", [[1 << 40, 1 << 40], [1 << 40, 2]]),
        ("mm", [[1 << 30, 1 << 10], [1 << 10, 1 << 30]]),
        ("bmm", [[2, 3, 4], [3, 4, 5]]),
        ("_scaled_dot_product_flash_attention", [[2, 3, 4, 8], [2, 2, 4, 8], [2, 2, 4, 8]]),
        ("_flash_attention_forward", [[40, 4, 8], [40, 4, 8], [40, 4, 8], [3]]),
        ("_efficient_attention_forward", [[1, 9, 4, 8]] * 3 + [[], [3]]),
        ("linear", [[3, 4], [5, 4]]),
    ],
)
def test_shapes_that_no_formula_is_for_have_no_cost(name: str, shapes: Any) -> None:
    assert cost(name, shapes) is None


def test_key_heads_that_several_queries_share_count_as_often() -> None:
    values = ["", "", "", "0.", "False"]
    found = cost(
        "_scaled_dot_product_flash_attention",
        [[2, 8, 5, 16], [2, 2, 7, 16], [2, 2, 7, 24]],
        [BF16] * 3,
        values=values,
    )
    read = 2 * 8 * 5 * 16 + 2 * 2 * 7 * (16 + 24)
    assert found == Cost(2 * 2 * 8 * 5 * 7 * (16 + 24), 2 * (read + 2 * 8 * 5 * 24), "bf16")


def test_a_causal_mask_leaves_half_where_there_are_as_many_keys_as_queries() -> None:
    name = "_scaled_dot_product_flash_attention"
    square, masked = [[1, 1, 4, 8]] * 3, ["", "", "", "0.", "True"]
    found = cost(name, square, values=masked)
    assert found is not None and (found.causal, found.unmasked) == (True, 5 / 8)
    decode = cost(name, [[1, 1, 1, 8], [1, 1, 9, 8], [1, 1, 9, 8]], values=masked)
    assert decode is not None and (decode.causal, decode.unmasked) == (True, None)
    untold = cost(name, square)
    assert untold is not None and (untold.causal, untold.unmasked) == (False, None)


CONVOLUTION = ["", "", "", "[2]", "[1]", "[1]", "False", "[0]", "1"]


def test_convolutions_need_their_strides_and_groups() -> None:
    shapes = [[2, 4, 9], [6, 4, 3], [6]]
    found = cost("convolution", shapes, ["float"] * 3, values=CONVOLUTION)
    assert found == Cost(2 * 2 * 5 * 3 * 6 * 4, 4 * (72 + 72 + 2 * 6 * 5), "fp32")
    assert cost("convolution", shapes, ["float"] * 3) is None
    for place, value in ((3, "[0]"), (3, "[1, 1]"), (6, ""), (8, "2"), (8, "0"), (4, "[-1]")):
        wrong = [*CONVOLUTION[:place], value, *CONVOLUTION[place + 1 :]]
        assert cost("convolution", shapes, values=wrong) is None, (place, value)
    assert cost("convolution", [[2, 4, 1], [6, 4, 9]], values=CONVOLUTION) is None


@pytest.mark.parametrize(
    ("mask", "times"), [("[True, True, False]", 2), ("[False, True, True]", 1)]
)
def test_a_backward_convolution_counts_once_for_each_gradient(mask: str, times: int) -> None:
    values = ["", "", "", "[8]", "[2]", "[1]", "[1]", "False", "[0]", "2", mask]
    found = cost("convolution_backward", [[2, 8, 5], [2, 4, 9], [8, 2, 3]], values=values)
    assert found is not None and found.flops == times * 2 * 2 * 5 * 3 * 8 * 2
    assert found.bytes is None
    assert cost("convolution_backward", [[2, 8, 6], [2, 4, 9], [8, 2, 3]], values=values) is None


LAYER = "TrainableParams={weight: [5760, 2880], bias: [5760]}, StaticParams={}"


def layer(detail: str, shapes: str = "[[16, 2880]]", name: str = "model.layers.3.mlp.up") -> Frame:
    return Frame(Kind.NVTX, name, extra=(("shapes", shapes), ("detail", detail)))


def test_a_layer_with_a_matrix_for_weight_is_a_product_of_the_type_that_the_user_says() -> None:
    assert frame_cost(layer(LAYER), "") == Cost(2 * 16 * 2880 * 5760, None, "")
    moved = 2 * (16 * 2880 + 2880 * 5760 + 16 * 5760)
    assert frame_cost(layer(LAYER), "bf16") == Cost(2 * 16 * 2880 * 5760, moved, "bf16")


@pytest.mark.parametrize(
    "frame",
    [
        layer("TrainableParams={weight: [2880]}"),
        layer("TrainableParams={weight: [32, 5760, 2880]}"),
        layer(LAYER, "[[16, 5760]]"),
        layer(LAYER, "[[2880]]"),
        layer(LAYER, "[[16, 2880], [16, 2880]]"),
        layer(LAYER, "[[16, 288"),
        layer(LAYER, name="model.embed_tokens"),
        layer("StaticParams={weight: [5760, 2880]}"),
    ],
)
def test_other_layers_have_no_cost(frame: Frame) -> None:
    assert frame_cost(frame, "bf16") is None


def test_only_operators_and_layers_with_shapes_are_looked_at() -> None:
    import numpy as np

    frames = [
        Frame(Kind.NVTX, "aten::mm"),
        Frame(Kind.NVTX, "aten::mm", extra=(("shapes", "[[2, 2], [2, 2]]"),)),
        Frame(Kind.NVTX, "aten::add", extra=(("shapes", "[[2, 2], [2, 2]]"),)),
        layer(LAYER),
    ]
    assert sized_frames(frames, np.arange(4)) == (1, 3)


@examples(1)
@given(
    st.recursive(st.integers(-(10**17), 10**17), lambda inner: st.lists(inner, max_size=3)),
    st.sampled_from([", ", ",", " , "]),
)
def test_lists_of_numbers_are_read_as_json_has_them(value: Any, between: str) -> None:
    text = json.dumps(value, separators=(between, ": "))
    found = read_inputs(text).shapes
    assert found == (value if isinstance(value, list) else [])


@pytest.mark.parametrize("text", ["", "[[1, 2]", "[1]]", "[1][2]", "1, 2", "[a]", "[1.5]", "]["])
def test_other_texts_are_no_shapes(text: str) -> None:
    assert read_inputs(text).shapes == []


texts = st.one_of(
    st.text(max_size=30),
    st.recursive(
        st.one_of(st.integers(), st.booleans(), st.text("[]0123456789-, Truefals", max_size=9)),
        st.lists,
        max_leaves=8,
    ).map(json.dumps),
)


@examples(2)
@given(st.sampled_from(sorted(OPERATORS)), texts, texts, texts, texts)
def test_no_text_makes_a_formula_fail(
    name: str, shapes: str, types: str, strides: str, values: str
) -> None:
    found = cost_of(name, read_inputs(shapes, types, strides, values))
    assert found is None or (found.flops >= 0 and (found.bytes is None or found.bytes >= 0))
