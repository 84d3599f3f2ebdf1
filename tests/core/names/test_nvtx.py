"""Cleaning of range names, and payloads."""

from __future__ import annotations

import time
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flame.core.names import nvtx
from flame.core.names.nvtx import RangeName, clean_range, payload_text

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
