"""Renames, and numbers in the names of layers and modules that fold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import UsageError
from flame.core.names.rename import apply_renames, fold_indices, fold_module, parse_rename


def renamed(name: str, *rules: str) -> str:
    return apply_renames(name, [parse_rename(rule) for rule in rules])


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        (r"layers\.\d+=layers.*", "model.layers.17.mlp", "model.layers.*.mlp"),
        (r"^(\w+)\.\d+=\1", "block.3.x", "block.x"),
        (r"(?P<a>x)=<\g<a>>", "x", "<x>"),
        (r"lr\=0.1=lr", "lr=0.1", "lr"),
        (r"a[=]b=c", "a=b", "c"),
        (r"a[]=]b=c", "a=b", "c"),
        (r"a(?=b)=c", "ab", "cb"),
        (r"a(=|b)=c", "a=", "c"),
        (r"\(\d+\)=", "f(12)", "f"),
        ("a=b=c", "a", "b=c"),
    ],
)
def test_rename_splits_at_the_first_free_equals_sign(rule: str, name: str, expected: str) -> None:
    assert renamed(name, rule) == expected


def test_renames_apply_in_order() -> None:
    assert renamed("a", "a=b", "b=c") == "c"
    assert renamed("a", "b=c", "a=b") == "b"


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "=",
        "=x",
        "abc",
        r"a\=b",
        "a(=b",
        "[=b",
        "*=b",
        "a{99999999999}=b",
        "(" * 5_000 + ")" * 5_000 + "=x",
        r"(a)=\2",
        r"a=\g<x>",
        r"a=\q",
        "a=b\\",
    ],
    ids=range(14),
)
def test_bad_rename_is_a_usage_error_of_one_line(rule: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rename(rule)
    assert "--rename" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rename_warns_of_nothing() -> None:
    assert renamed("[a", "[[]a=b") == "b"  # Python warns of a possible nested set


@given(st.text(), st.text())
def test_rename_parses_or_is_a_usage_error(rule: str, name: str) -> None:
    try:
        parsed = parse_rename(rule)
    except UsageError:
        return
    assert parsed.replacement == rule[len(parsed.pattern.pattern) + 1 :]


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("GptOss.model.layers.0.attn.qkv_proj", "GptOss.model.layers.*.attn.qkv_proj"),
        ("model.layers.18", "model.layers.*"),
        ("transformer.h.3.attn", "transformer.h.*.attn"),
        ("layers.0.1.norm", "layers.*.1.norm"),
        ("layer1.0.conv1", "layer*.*.conv1"),
        ("FSDP::forward (encoder.block.14.layer.0)", "FSDP::forward (encoder.block.*.layer.*)"),
        (
            "/blocks.2/blocks.2.3/Conv + /blocks.2/Relu",
            "/blocks.*/blocks.*.3/Conv + /blocks.*/Relu",
        ),
        ("layer_12", "layer_*"),
        ("decoder_layer_12_attn", "decoder_layer_*_attn"),
        ("layers[3].mlp", "layers[*].mlp"),
        ("Layer 7", "Layer *"),
        ("TransformerBlock7", "TransformerBlock*"),
    ],
)
def test_indices_of_layers_fold(name: str, folded: str) -> None:
    assert fold_indices(name) == folded
    assert fold_indices(folded) == folded


@pytest.mark.parametrize(
    "name",
    [
        "torch.2.1",
        "cuda12.4",
        "v1.2.3",
        "layer 2.5",
        "lr=1.5",
        "[[16, 2880], []]",
        "block_64x64",
        "block_64_32",
        "w.16x16",
        "linear.4096",
        "Layer 2024",
        "layer_norm_1",
        "aten::conv2d",
        "step 103",
        "argmax_iter_7",
        "decode bs=128 v10",
        "memcpyDH2-0",
    ],
)
def test_other_numbers_stay(name: str) -> None:
    assert fold_indices(name) == name


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("nn.Module: Qwen2DecoderLayer_12", "nn.Module: Qwen2DecoderLayer_*"),
        ("nn.Module: Linear_0", "nn.Module: Linear_*"),
        ("nn.Module: Conv2d", "nn.Module: Conv2d"),
        ("forward_12", "forward_12"),
        ("my nn.Module: Linear_0", "my nn.Module: Linear_0"),
        ("nn.Module: two\nlines_3", "nn.Module: two\nlines_*"),
    ],
)
def test_numbers_of_modules_fold(name: str, folded: str) -> None:
    assert fold_module(name) == folded
