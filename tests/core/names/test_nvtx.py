"""Cleaning of range names, payloads, renames and API names."""

from __future__ import annotations

import csv
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flame.core.errors import UsageError
from flame.core.names import nvtx
from flame.core.names.cuda import api_name
from flame.core.names.nvtx import RangeName, clean_range, payload_text
from flame.core.names.rename import apply_renames, fold_indices, fold_module, parse_rename
from tests.conftest import TRACES

EXPERTS = (
    "{'Module': 'GptOss.model.layers.18.mlp.experts', 'TrainableParams': {'weight': [5760, 2880]}, "
    "'Inputs': [[16, 2880]], 'StaticParams': {'act': 'silu, gated', 'topk': (1, 4)}}"
)


def cleaned(text: str) -> tuple[str, str, str]:
    name = clean_range(text)
    return name.name, name.shapes, name.detail


@pytest.mark.parametrize(
    ("text", "name", "shapes"),
    [
        ("aten::mul, op_id = 314290", "aten::mul", ""),
        ("aten::mul, seq = 12", "aten::mul", ""),
        ("MulBackward0, stashed seq = 12", "MulBackward0", ""),
        ("aten::mul, seq = -1, op_id = 3", "aten::mul", ""),
        ("aten::mm, sizes = [[16, 2880], []]", "aten::mm", "[[16, 2880], []]"),
        (
            "aten::mul, seq = 5, op_id = 871, sizes = [[4, 256, 512], []], "
            "input_op_ids = [(867,0), (0,-1)]",
            "aten::mul",
            "[[4, 256, 512], []]",
        ),
        ("x, input_op_ids = [], sizes = [[2]], seq = 1", "x", "[[2]]"),
        (
            "FSDP::pre_forward (encoder.block.0), op_id = 17",
            "FSDP::pre_forward (encoder.block.0)",
            "",
        ),
    ],
)
def test_emit_nvtx_suffixes_go_and_shapes_are_kept(text: str, name: str, shapes: str) -> None:
    assert cleaned(text) == (name, shapes, "")


@pytest.mark.parametrize(
    ("text", "name", "shapes"),
    [
        ("aten::cat, sizes = [[2, 3], [4", "aten::cat", "[[2, 3]]"),
        ("aten::cat, sizes = [[2, 3], ", "aten::cat", "[[2, 3]]"),
        ("aten::cat, sizes = [[2", "aten::cat", ""),
        ("aten::cat, sizes = [[2]], input_op_ids = [(12,0), (8", "aten::cat", "[[2]]"),
    ],
)
def test_cut_off_suffixes_leave_what_is_whole(text: str, name: str, shapes: str) -> None:
    assert cleaned(text) == (name, shapes, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a, b",
        "a = b",
        "loss, seq = abc",
        "lr, seq = 3rd try",
        ", op_id = 3",
        "layer_0",
        "argmax_iter_7",
        "step 103",
        "gpu_model_runner: forward",
        "ProfilerStep#",
        "ProfilerStep#12 (warm)",
        "execute_context_0(0)",
        "execute_context_0(0)_generation_8(99999999999)",
        "execute_32_context_0(sq0sk0)",
        "execute_model",
        "[Executor] _forward_step 103: warm",
        "[Executor] _forward_step 103: 1 ctx reqs!",
        "{ForeignNode[/ConstantOfShape_3_output_0.../ScatterND_23]}",
        "{'Module': 'GptOss.model.lay",
        "{'Module': ''}",
        "{'Module'",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert clean_range(text) == RangeName(text)


def test_layer_dict_gives_module_shapes_and_detail() -> None:
    assert cleaned(EXPERTS) == (
        "GptOss.model.layers.18.mlp.experts",
        "[[16, 2880]]",
        "TrainableParams={weight: [5760, 2880]}, StaticParams={act: silu, gated, topk: (1, 4)}",
    )


@pytest.mark.parametrize(
    ("until", "shapes", "detail"),
    [
        ("'Inputs': [[16, 2880]], 'Stat", "[[16, 2880]]", "TrainableParams={weight: [5760, 2880]}"),
        ("'Inputs': [[16, ", "", "TrainableParams={weight: [5760, 2880]}"),
        ("'weight': [5760, ", "", ""),
    ],
)
def test_cut_off_layer_dict_gives_its_whole_items(until: str, shapes: str, detail: str) -> None:
    text = EXPERTS[: EXPERTS.index(until) + len(until)]
    assert cleaned(text) == ("GptOss.model.layers.18.mlp.experts", shapes, detail)


@given(st.integers(0, len(EXPERTS)))
def test_layer_dict_cut_anywhere_never_invents(cut: int) -> None:
    whole, part = clean_range(EXPERTS), clean_range(EXPERTS[:cut])
    assert part.name in (whole.name, EXPERTS[:cut])
    assert part.shapes in (whole.shapes, "")
    assert whole.detail.startswith(part.detail)


def test_quotes_brackets_and_commas_inside_strings_do_not_split_a_layer_dict() -> None:
    assert cleaned(r"""{'Module': "it's [a", 'Inputs': ['x, \'}y'], "B": 'p:q'}""") == (
        "it's [a",
        r"['x, \'}y']",
        "B=p:q",
    )


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        ("execute_context_0(0)_generation_8(8)", "generation"),
        ("execute_context_2(512)_generation_0(0)", "context"),
        ("execute_context_2(512)_generation_8(8)", "mixed"),
        ("execute_context_1(888_788544)_generation_0(0)", "context"),
        ("execute_context_1(888_788544)_generation_8(8_64)", "mixed"),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086)", "generation"),
    ],
)
def test_vllm_step_names_its_phase(text: str, phase: str) -> None:
    name, _, detail = cleaned(text)
    assert name == "execute"
    assert detail.startswith(f"phase={phase}, ")


def test_vllm_step_keeps_its_counts() -> None:
    _, _, detail = cleaned("execute_context_2(512)_generation_8(9)")
    assert detail == "phase=mixed, 2 ctx reqs, 512 ctx tokens, 8 gen reqs, 9 gen tokens"


def test_newer_vllm_steps_keep_their_counts_and_drop_sums_over_lengths() -> None:
    _, _, squared = cleaned("execute_context_1(888_788544)_generation_0(0)")
    assert squared == "phase=context, 1 ctx reqs, 888 ctx tokens, 0 gen reqs, 0 gen tokens"
    _, _, sums = cleaned(
        "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)"
    )
    assert sums == "phase=generation, 0 ctx reqs, 0 ctx tokens, 32 gen reqs, 32 gen tokens"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("103: 0 ctx reqs, 8 gen reqs", "phase=generation, 0 ctx reqs, 8 gen reqs"),
        ("9: 2 ctx reqs, 8 gen reqs", "phase=context, 2 ctx reqs, 8 gen reqs"),
        (
            "1: 0 ctx reqs, 0 ctx tokens, 8 gen reqs",
            "phase=generation, 0 ctx reqs, 0 ctx tokens, 8 gen reqs",
        ),
    ],
)
def test_tensorrt_llm_step_loses_its_number_and_names_its_phase(text: str, detail: str) -> None:
    assert cleaned(f"[Executor] _forward_step {text}") == ("[Executor] _forward_step", "", detail)


def test_unnumbered_tensorrt_llm_step() -> None:
    name = clean_range("[Executor] _forward_step: 1 ctx reqs, 0 gen reqs").name
    assert name == "[Executor] _forward_step"


def test_kineto_step_loses_its_number() -> None:
    assert clean_range("ProfilerStep#12") == RangeName("ProfilerStep")


def damaged(text: str, random: Random) -> str:
    """Put up to three characters that mean something in place of others, or between them."""
    letters = [*text]
    for _ in range(random.randrange(4)):
        at = random.randrange(1, len(letters))
        letters[at : at + random.randrange(2)] = random.choice(["", *"'\"[](){},: \\a1", ", 'a': "])
    return "".join(letters)


def test_plain_dicts_are_taken_apart_as_others_are() -> None:
    random, plain = Random(0), 0
    texts = [
        EXPERTS,
        "{'Module': 'a', 'b': [[1], [2, 3]], 'c': {}, 'd': 4, 'e': {'f': '', 'g': True}}",
    ]
    for _ in range(3000):
        text = damaged(random.choice(texts), random)
        if items := nvtx._plain_items(text):
            plain += 1
            assert items == list(nvtx._dict_items(text))
    assert 500 < plain < 2500


@given(st.text())
@example("{'Module': 'a', 'b'")
@example("x, sizes = [")
def test_any_text_gives_a_name_that_is_not_longer(text: str) -> None:
    name = clean_range(text).name
    assert len(name) <= len(text)
    assert bool(name) == bool(text)


MARKS = st.sampled_from(
    [
        "{'Module': ",
        "'",
        '"',
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " = ",
        ", op_id",
        ", sizes = [",
        "1",
    ]
)


@given(st.lists(MARKS).map("".join))
def test_no_arrangement_of_marks_loses_the_name(text: str) -> None:
    name = clean_range("{'Module': " + text).name
    assert name
    assert clean_range("name" + text).name.startswith("name")


@pytest.mark.parametrize(
    "text",
    [
        "{'Module': " + "[" * 100_000,
        "{'Module': '" + "\\'" * 50_000,
        "{'Module': " + "'\"" * 50_000,
        "{'Module': 'a'" + ", 'b': 1" * 12_000,
        "{'Module': " + "[1, " * 25_000,
        "{'Module': {" + "'a': [1], " * 10_000,
        "{'Module': " + "'a': {" * 15_000,
        "a" + ", op_id = 1" * 10_000 + "x",
        ", sizes = [" * 10_000,
        "x, sizes = [" + "[" * 100_000,
        "x, sizes = [" + "[1, " * 25_000 + "x",
        ", seq = " + "1" * 100_000 + "x",
        "[Executor] _forward_step " + "1" * 100_000,
        "[Executor] _forward_step 1: 1 ctx reqs" + ", 1 gen reqs" * 9_000 + "!",
    ],
    ids=range(14),
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    started = time.thread_time()
    clean_range(text)
    # Measured 1–80 ms; anything quadratic takes minutes on 100 kB.
    assert time.thread_time() - started < 5


def test_payload_is_one_compact_line() -> None:
    assert (
        payload_text('{\n  "Name": "/ArgMax",\n  "K": [1,2]\n}')
        == '{"Name": "/ArgMax", "K": [1, 2]}'
    )


def test_payload_numbers_are_not_rounded() -> None:
    assert payload_text("[12345678901234567890123, 1e400]") == "[12345678901234567890123, 1e400]"


@pytest.mark.parametrize(
    ("payload", "line"),
    [("", ""), ("{not json}", "{not json}"), ("a\nb", "a b"), ('"\ud800"', '"\ud800"')],
)
def test_payload_that_is_no_json_is_shown_as_it_is(payload: str, line: str) -> None:
    assert payload_text(payload) == line


@pytest.mark.parametrize(
    "payload", ["[" * 100_000, "[" * 2_000 + "]" * 2_000, '"' + "x" * 600 + '"', "y" * 501]
)
def test_long_payload_is_cut(payload: str) -> None:
    line = payload_text(payload)
    assert len(line) == 500
    assert line.endswith("…")


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
    ("recorded", "name"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
        ("cudaLaunchKernel_v7000_ptsz", "cudaLaunchKernel"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel_ptsz"),
        ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties_v2"),
        ("cuGetProcAddress_v2", "cuGetProcAddress_v2"),
        ("cuLaunchKernel", "cuLaunchKernel"),
        ("", ""),
    ],
)
def test_api_name_loses_its_version(recorded: str, name: str) -> None:
    assert api_name(recorded) == name


def recorded_api_names(path: Path) -> set[str]:
    query = """SELECT DISTINCT value FROM CUPTI_ACTIVITY_KIND_RUNTIME
               JOIN StringIds ON StringIds.id = nameId"""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        return {value for (value,) in connection.execute(query)}


ORACLES = sorted(path.name for path in TRACES.glob("oracles/*.cuda_api_sum.csv"))


@pytest.mark.parametrize("oracle", ORACLES)
def test_api_names_agree_with_nvidia(oracle: str, nsys_trace: Callable[[str], Path]) -> None:
    with (TRACES / "oracles" / oracle).open(newline="") as file:
        printed = {row["Name"] for row in csv.DictReader(file)}
    recorded = recorded_api_names(nsys_trace(oracle.split(".")[0] + ".sqlite"))
    # NVIDIA's report takes off `_v` and exactly four digits; five-digit versions stay on.
    assert {name[:-6] if name[-6:-4] == "_v" else name for name in recorded} == printed
    assert {api_name(name) for name in recorded} == {api_name(name) for name in printed}


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
