"""Which digits of a name are a number of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.names.numbers import are_folded_alike, may_have_numbers, split_numbers


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("step 7", "step *"),
        ("ProfilerStep#12", "ProfilerStep#*"),
        ("argmax_iter_7", "argmax_iter_*"),
        ("nn.Module: DecoderLayer_12", "nn.Module: DecoderLayer_*"),
        ("step: decode bs=4 v20", "step: decode bs=* v*"),
        ("model.layers.18.mlp", "model.layers.*.mlp"),
        ("layers.3", "layers.*"),
        ("layers.3/mlp", "layers.*/mlp"),
        ("layers[3]", "layers[*]"),
        ("Layer 7", "Layer *"),
        ("layer12", "layer*"),
        ("layer1.0.conv1", "layer1.*.conv1"),
        ("a.3.1.conv", "a.*.*.conv"),
        ("pre_forward (block.14.layer.0)", "pre_forward (block.*.layer.*)"),
        ("Torch-Compiled Region: 3/0", "Torch-Compiled Region: */*"),
        ("[Executor] _forward_step 103: 0 ctx reqs", "[Executor] _forward_step *: * ctx reqs"),
        ("stream 7 step 9", "stream 7 step *"),
    ],
)  # fmt: skip
def test_counters_are_numbers(name: str, folded: str) -> None:
    assert "*".join(split_numbers(name).texts) == folded


@pytest.mark.parametrize(
    "name",
    [
        "forward",
        "fp16",
        "float4",
        "sm_90",
        "compute_89",
        "h100",
        "cuda12.4",
        "torch.2.1",
        "torch 2.1.0",
        "lr=0.001",
        "aten::conv2d",
        "evaluate_function: MulBackward0",
        "rank 3",
        "dp_rank_3",
        "GPU 1",
        "cuda:0",
        "stream 13",
        "nccl:send 0->1",
        "gemm 1024x1024",
        "mm [16, 2880]",
        "forward (model.py:12)",
        "0x7f12",
        "12",
        "",
    ],
)
def test_names_sizes_and_parties_are_none(name: str) -> None:
    assert split_numbers(name) == ((name,), ())


@pytest.mark.parametrize("part", ["0.", ".0", "0,", "a0.", "layer0.", "0 ", "rank 0"])
@pytest.mark.parametrize("end", ["", ".b", "/", "x"])
def test_long_names_take_no_longer_than_their_length(part: str, end: str) -> None:
    name = f"a{part * 30_000}{end}"  # minutes, were it the square
    assert len(split_numbers(name).texts) >= 1


names = st.text("ab10 ._:-[]v,*é", max_size=20)


@given(names)
def test_a_name_is_its_texts_with_its_numbers_between(name: str) -> None:
    texts, numbers = split_numbers(name)
    parts = [texts[0]]
    for number, text in zip(numbers, texts[1:], strict=True):
        parts += [number, text]
    assert "".join(parts) == name
    assert all(number.isdigit() for number in numbers)


@given(names, st.integers(0, 12_000))
def test_what_is_a_number_depends_on_no_digit(name: str, value: int) -> None:
    texts, numbers = split_numbers(name)
    assert split_numbers(str(value).join(texts)).texts == texts
    assert len(split_numbers(str(value).join(texts)).numbers) == len(numbers)


@given(st.lists(st.from_regex(r"\A[a-z0-9_][a-z0-9_. -]*\Z"), max_size=6))
def test_names_that_are_passed_over_have_no_numbers(listed: list[str]) -> None:
    ends = np.cumsum([0, *map(len, listed)])
    marked = may_have_numbers("".join(listed).encode(), ends[:-1], ends[1:])
    for name, may in zip(listed, marked.tolist(), strict=True):
        assert may or not split_numbers(name).numbers


def test_names_without_a_number_of_their_own_take_no_time() -> None:
    listed = ["f123", "fp16", "step_7", "v20", "tail", "7 steps", ""]
    ends = np.cumsum([0, *map(len, listed)])
    marked = may_have_numbers("".join(listed).encode(), ends[:-1], ends[1:])
    assert marked.tolist() == [False, True, True, True, False, True, False]


@pytest.mark.parametrize(
    ("name", "other", "alike"),
    [
        ("step 8", "step *", True),
        ("step *", "step 8", True),
        ("decode bs=4 v7", "decode bs=4 v*", True),
        ("decode bs=4 v*", "decode bs=* v*", True),
        ("decode bs=8 v7", "decode bs=4 v*", False),
        ("step 8", "step 9", False),
        ("step x", "step *", False),
        ("layers(.)8", "layers(.)*", True),
        ("forward", "forward", False),
    ],
)
def test_names_are_alike_where_one_has_stars_for_the_numbers_of_the_other(
    name: str, other: str, alike: bool
) -> None:
    assert are_folded_alike(name, other) is alike
