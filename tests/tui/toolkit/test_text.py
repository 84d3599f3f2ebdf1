from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from flame.tui.toolkit.text import (
    LONGEST,
    cut,
    cut_start,
    fill,
    is_path,
    printable,
    take,
    take_last,
    width_of,
    wrap,
)

names = st.text(st.characters(), max_size=80)  # any code point, surrogates included


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain [clone .isra.0]", "plain [clone .isra.0]"),
        ("[bold]not markup[/bold]", "[bold]not markup[/bold]"),
        ("\x1b[31mred\x1b]0;title\x07", "␛[31mred␛]0;title␇"),
        ("two\nlines\tand\x7f", "two␊lines␉and␡"),
        ("c1 \x9b31m", "c1 �31m"),
        ("right\u202eto left\u2066", "right�to left�"),
        ("line\u2028paragraph\u2029", "line�paragraph�"),
        ("\ud800 alone", "� alone"),
        ("no\u00a0break", "no break"),
        ("👩\u200d🚀 ❤\ufe0f 👍🏽", "👩🚀 ❤ 👍"),
        ("z" + "\u0301" * 50, "z\u0301\u0301"),
        ("カーネル", "カーネル"),
    ],
)
def test_printable(name: str, shown: str) -> None:
    assert printable(name) == shown


@given(names)
@example("\x1b[2J")
def test_printable_leaves_nothing_that_a_terminal_obeys(name: str) -> None:
    shown = printable(name)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    shown.encode()
    assert printable(shown) == shown


@given(names, st.integers(0, 40))
def test_nothing_is_wider_than_it_may_be(name: str, width: int) -> None:
    assert cell_len(cut(name, width)) <= width
    text = printable(name)
    assert cell_len(take(text, width)) <= width
    assert cell_len(take_last(text, width)) <= width
    assert cell_len(cut_start(text, width)) <= width
    assert text.startswith(take(text, width))
    assert text.endswith(take_last(text, width))


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("nn.Module: Linear_3", 19, "nn.Module: Linear_3"),
        ("nn.Module: Linear_3", 18, "Linear_3"),
        ("nn.Module: Qwen2DecoderLayer_3", 10, "Qwen2Deco…"),
        ("<built-in method to of Tensor object>", 36, "to"),
        ("<built-in function linear>", 10, "linear"),
        ("autograd::engine::evaluate_function: MmBackward0", 20, "MmBackward0"),
        ("Optimizer.step#AdamW.step", 12, "AdamW.step"),
        ("## forward:over_arch ##", 20, "forward:over_arch"),
        ("io/netty/NioEventLoop:.run_[j]", 25, "…ty/NioEventLoop:.run_[j]"),
    ],
)
def test_what_all_names_of_a_sort_have_goes_first(name: str, width: int, shown: str) -> None:
    assert cut(name, width) == shown


def test_wrappings_of_any_length_are_found_at_once() -> None:
    begun = time.thread_time()
    for name in ("nn.Module: " * 9_000, "## " + "a " * 50_000, "<built-in method " + "a " * 50_000):
        assert width_of(cut(name, 30)) <= 30
    assert time.thread_time() - begun < 0.5


@given(names, st.integers(2, 40))
def test_a_cut_name_is_as_wide_as_wide_characters_allow(name: str, width: int) -> None:
    if width_of(printable(name)) > width:
        assert width_of(cut(name, width)) >= width - 2


@given(names, st.integers(2, 30), st.integers(1, 5))
def test_wrapped_lines_fit(name: str, width: int, lines: int) -> None:
    wrapped = wrap(name, width, lines)
    assert len(wrapped) <= lines
    assert all(cell_len(line) <= width for line in wrapped)


@pytest.mark.parametrize("width", range(9, 30))
def test_a_number_stays_with_its_unit(width: int) -> None:
    lines = wrap("p50 1.20 MB  p95 33.6 MB  max 1,234 ms, 87.2 % of it", width, 9)
    for amount in ("1.20 MB", "33.6 MB", "1,234 ms", "87.2 %"):
        assert any(amount in line for line in lines), lines


def test_prose_is_wrapped_between_words_alone() -> None:
    text = "copies of 1.5 GB (at 58.65 GB/s) in aten::copy_"
    assert wrap(text, 30, 9, prose=True) == ["copies of 1.5 GB (at", "58.65 GB/s) in aten::copy_"]
    assert wrap("two words", 9, 2, prose=True) == ["two words"]
    advice = "copies of tensors, torch.cuda.synchronize(): name the lines"
    assert wrap(advice, 32, 9, prose=True) == [
        "copies of tensors,",
        "torch.cuda.synchronize(): name",
        "the lines",
    ]
    assert wrap("see torch.cuda.synchronize()", 20, 9, prose=True)[0] == "see torch.cuda."
    assert wrap("two words", 3, 2, prose=True) == ["two", "wo…"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("model.layers.18.mlp.experts", "…rs.18.mlp.experts"),
        ("src/attention/flash.cu", "…ttention/flash.cu"),
        ("at::native::vectorized_kernel", "…vectorized_kernel"),
        ("gpu_model_runner: forward", "gpu_model_ru…rward"),
        ("cutlass::Kernel2<tile_128x64>", "cutlass::Ker…8x64>"),
        ("short", "short"),
    ],
)
def test_names_are_cut_where_they_say_least(name: str, shown: str) -> None:
    assert cut(name, 18) == shown


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("vectorized_elementwise<Mul, Binary>", 23, "vectorize…<Mul, Binary>"),
        ("sm80_xmma_gemm_f32_tilesize64x256x8<split>", 23, "sm80_xmma_…256x8<split>"),
        ("multi_tensor_apply<multiplies, BinaryOpScalar>", 23, "multi…<multiplies, Bi…>"),
        ("vectorized_elementwise<silu>", 28, "vectorized_elementwise<silu>"),
        ("<module_of_a_long_name_in_python>", 18, "<module_of_a…thon>"),
        (
            "void at::native::copy_kernel<4, at::native::Copy<int>>(int)",
            26,
            "copy_kernel<4, Copy<int>>…",
        ),
        ("void at::native::copy_kernel<4>(int*)", 36, "copy_kernel<4>(int*)"),
    ],
)
def test_names_of_kernels_keep_what_tells(name: str, width: int, shown: str) -> None:
    assert cut(name, width) == shown


def test_narrow_labels_keep_the_beginning() -> None:
    assert cut("FSDP::pre forward", 7) == "FSDP::…"
    assert cut("abc", 1) == "a"
    assert cut("abc", 0) == ""


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a.b", True),
        ("at::native::copy", True),
        ("dir/file.py", True),
        ("plain", False),
        ("two words.txt here", False),
        ("step 103", False),
        ("...", False),
        ("", False),
    ],
)
def test_is_path(name: str, path: bool) -> None:
    assert is_path(name) is path


def test_wide_characters_never_cross_the_edge() -> None:
    assert take("日本語", 5) == "日本"
    assert take_last("日本語", 5) == "本語"
    assert fill("日本", 6) == "日本  "


def test_a_mark_does_not_move_to_another_letter() -> None:
    assert take_last("ae\u0301b", 1) == "b"
    assert take_last("a日\u0301b", 2) == "b"


def test_long_texts_break_after_punctuation() -> None:
    text = "void at::native::vectorized_elementwise_kernel<4, float>(int)"
    assert wrap(text, 22, 9) == [
        "void at::native::",
        "vectorized_elementwise",
        "_kernel<4, float>(int)",
    ]


def test_what_does_not_fit_the_lines_is_cut() -> None:
    assert wrap("x" * 100, 10, 3) == ["x" * 10, "x" * 10, "xxxxxxxxx…"]


@pytest.mark.parametrize("unit", ["x", "\x1b[31m", "日", "e\u0301", "a.", "(<", "\u0301"])
def test_huge_names_cost_no_more_than_a_screen(unit: str) -> None:
    name = unit * (600_000 // len(unit))
    begin = time.thread_time()
    assert len(printable(name)) <= LONGEST + 1
    assert cell_len(cut(name, 120)) <= 120
    assert wrap(name, 40, 6)
    assert time.thread_time() - begin < 1.0


def test_escapes_cannot_survive_a_cut() -> None:
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", cut("\x1b" * 5000 + "[31m", 60))
