"""The options that say what GPUs can do, in every command that takes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Flame
from tests.support.generated.worked import product
from tests.support.writers.kinetofile import KinetoFile

FLOPS = 2 * 64 * 32 * 16


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A product of 60 ns on a GPU that nobody knows."""
    file = KinetoFile()
    file.op("aten::mm", 0, 100, **product(64, 32, 16))
    file.launch(1, (10, 20), (1000, 1060), "gemm")
    return file.write(tmp_path / "trace.json")


def test_what_lies_above_the_peak_is_exported_where_it_is_known(flame: Flame, trace: Path) -> None:
    words = ("export", "-f", "folded", "-o", "-", "--levels", "kernel", trace)
    assert flame(*words, "--metric", "flops").out == f"gemm {FLOPS}\n"
    assert flame(*words, "--metric", "waste", "--peak", "bf16=4,mem=1000").out == "gemm 44\n"
    refused = flame(*words, "--metric", "waste")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("flame: --metric waste: the peak of no GPU here is known")


def test_info_has_no_share_without_a_peak(flame: Flame, trace: Path) -> None:
    bare, known = (
        json.loads(flame("info", "--json", trace, *words).out)["efficiency"]
        for words in ((), ("--peak", "bf16=4,mem=1000"))
    )
    assert (bare["flops"], bare["compute_share"], bare["peaks"][0]["tflops"]) == (FLOPS, None, None)
    assert known["compute_share"] == pytest.approx(100 * FLOPS / 4e12 / 60e-9, abs=0.01)
    assert known["covered_percent"] == known["rated_percent"] == 100


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("view", "--print", "--peak", "bf16=fast"), "--peak: 'bf16=fast' is not one of bf16"),
        (("info", "--model-flops", "0"), "--model-flops: '0' is no number of FLOPs"),
        (("export", "-f", "folded", "--dtype", "b16"), "--dtype b16: use a type of PyTorch"),
        (("report", "--peak", ""), "--peak: '' is not one of bf16"),
    ],
)
def test_mistakes_are_told_in_a_line(
    flame: Flame, trace: Path, words: tuple[str, ...], told: str
) -> None:
    result = flame(*words, trace)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert result.err.startswith(f"flame: {told}")


def test_what_goes_on_is_not_rated(flame: Flame) -> None:
    result = flame("attach", "1", "--peak", "bf16=989")
    assert (result.code, result.err) == (
        2,
        "flame: --peak goes with what has ended: flame view PATH --peak …\n",
    )
