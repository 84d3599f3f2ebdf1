"""What every option of the selection does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import DEMANGLED, Export, Flame


def test_all_of_it(export: Export) -> None:
    assert export() == {
        "cudaLaunchKernel;gemm": 30,
        "cudaLaunchKernel;step;embed;gemm": 100,
        "cudaLaunchKernel;step;softmax": 50,
        "cudaMemcpyAsync;step;memcpy HtoD": 20,
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--metric", "count"], {"gemm": 2, "softmax": 1, "memcpy HtoD": 1}),
        (["--metric", "launch"], {"gemm": 10, "softmax": 5, "memcpy HtoD": 5}),
        (["--time", "2us/"], {"memcpy HtoD": 20, "gemm": 30}),
        (["--time", "-5us/1050ns"], {"gemm": 100}),
        (["--time=-5us/1050ns"], {"gemm": 100}),
        (["--nvtx-range", "emb*"], {"gemm": 100}),
        (["--device", "1"], {"gemm": 30}),
        (["--device", "0,1", "--stream", "9"], {"softmax": 50}),
        (["--stream", "9", "--stream", "7", "--pid", "200"], {"gemm": 30}),
        (["--tid", "201"], {"gemm": 30}),
        (["--kernel", "^soft"], {"softmax": 50}),
        (["--kernel", "float"], {"gemm": 130}),
        (["--include", "memcpy,memset"], {"memcpy HtoD": 20}),
        (["--kernel-names", "demangled", "--pid", "200"], {DEMANGLED: 30}),
        (["--kernel-names", "mangled", "--pid", "200"], {"_Z4gemmIfEvPf": 30}),
    ],
)
def test_options_that_choose_kernels(
    options: list[str], expected: dict[str, int], export: Export
) -> None:
    assert export("--levels", "kernel", *options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--levels", "nvtx"], "step"),
        (["--levels", "kernel,nvtx"], "softmax;step"),
        (["--levels", "process,device,stream"], "trainer [100];GPU 0 NVIDIA Test;stream 9"),
        (["--levels", "nvtx", "--nvtx-names", "raw"], "step, op_id = 7"),
        (["--levels", "nvtx", "--rename", "st.p=all"], "all"),
        (["--levels", "nvtx", "--rename", "s=t", "--rename", "tt=u"], "uep"),
        (["--levels", "nvtx", "--nvtx-start-end"], "step;request"),
    ],
)
def test_options_that_name_and_order(options: list[str], expected: str, export: Export) -> None:
    assert export("--stream", "9", *options) == {expected: 50}


@pytest.mark.parametrize(
    ("options", "stack"),
    [
        (["--shapes"], "cudaLaunchKernel;step;embed;[[2, 3]];gemm"),
        (["--shapes", "--levels", "nvtx,kernel"], "step;embed;[[2, 3]];gemm"),
        (["--shapes", "--levels", "shapes,nvtx"], "[[2, 3]];step;embed"),
        (["--levels", "shapes"], "[[2, 3]]"),
    ],
)
def test_shapes_are_a_level(options: list[str], stack: str, export: Export) -> None:
    assert export(*options, "--nvtx-range", "embed") == {stack: 100}


def test_view_takes_the_same_selection(flame: Flame, trace: Path) -> None:
    out = flame("view", trace, "--levels", "kernel", "--stream", "9").out
    assert "softmax" in out
    assert "gemm" not in out
