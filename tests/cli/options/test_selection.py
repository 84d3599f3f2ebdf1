"""What every option of the selection does."""

from __future__ import annotations

from pathlib import Path

import pytest

from samples import make_torch_sample
from tests.cli.conftest import DEMANGLED, Export, Flame, folded


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
        (["--time", "1us/", "--time", "/1050ns"], {"gemm": 100}),
        (["--nvtx-range", "step", "--nvtx-range", "embed"], {"gemm": 100}),
        (["--kernel", "gemm", "--kernel", "float"], {"gemm": 130}),
        (["--show-stacks", "soft", "--show-stacks", "max"], {"softmax": 50}),
        (["--hide-stacks", "^gemm$", "--hide-stacks", "HtoD"], {"softmax": 50}),
        (["--hide-frames", "gemm|soft"], {"all": 180, "memcpy HtoD": 20}),
        (["--min-percent", "26"], {"gemm": 130, "[smaller frames]": 70}),
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
        (["--invert"], "softmax;step;cudaLaunchKernel"),
        (["--show-from", "^step"], "step;softmax"),
        (["--rename", "softmax=step", "--levels", "kernel", "--collapse-recursion"], "step"),
        (["--levels", "nvtx", "--rename", "step=layers.7.mlp", "--fold-layers"], "layers.*.mlp"),
    ],
)
def test_options_that_name_and_order(options: list[str], expected: str, export: Export) -> None:
    assert export("--stream", "9", *options) == {expected: 50}


@pytest.mark.parametrize(
    ("options", "stack"),
    [
        (["--arrange", "unified"], "cudaLaunchKernel;step;softmax"),
        (["--arrange", "nested"], "step;cudaLaunchKernel;softmax"),
        (["--arrange", "layers"], "step;softmax"),
        (["--arrange", "layers", "--rename", "step=layers.7.mlp"], "layers.*.mlp;softmax"),
        (["--arrange", "kernels"], "softmax"),
        (["--arrange", "functions"], "softmax"),
        (["--arrange", "streams"], "GPU 0 NVIDIA Test;stream 9;softmax"),
    ],
)
def test_levels_are_arranged_by_name(options: list[str], stack: str, export: Export) -> None:
    assert export("--stream", "9", *options) == {stack: 50}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--arrange", "layer"],
            "--arrange: unknown arrangement 'layer': choose from unified, nested, modules, layers,",
        ),
        (["--arrange", "nested", "--levels", "nvtx"], "--arrange and --levels exclude each other"),
    ],
)
def test_arrangements_that_mean_nothing_are_refused(
    options: list[str], said: str, flame: Flame, trace: Path
) -> None:
    result = flame("view", trace, *options)
    assert result.code == 2 and said in result.err


def test_an_arrangement_without_its_frames_is_said(flame: Flame, trace: Path) -> None:
    assert "no modules: with_stack=True" in flame("view", trace, "--arrange", "modules").out
    export = flame("export", trace, "-f", "folded", "-o", "-", "--arrange", "modules")
    assert "note: no modules: with_stack=True" in export.err
    functions = flame("view", trace, "--arrange", "functions").out
    assert "this trace has no frames of python, native" in functions


def test_export_leaves_backward_passes_where_they_were_launched(
    flame: Flame, tmp_path: Path
) -> None:
    path = tmp_path / "torch.json"
    path.write_text(make_torch_sample.text())
    asked = ("export", path, "-f", "folded", "-o", "-", "--arrange", "layers")
    plain, linked = flame(*asked), flame(*asked, "--forward")
    assert "Backward" in plain.out and plain.out != linked.out
    outside = [line for line in folded(plain) if not line.startswith("ProfilerStep")]
    assert outside and len(outside) > sum(
        not line.startswith("ProfilerStep") for line in folded(linked)
    )
    shown = flame("view", path, "--arrange", "layers").out
    assert shown == flame("view", path, "--arrange", "layers", "--forward").out
    assert shown != flame("view", path, "--arrange", "layers", "--no-forward").out


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


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("weight", ["gemm", "softmax", "memcpy"]),
        ("name", ["gemm", "memcpy", "softmax"]),
        ("start", ["softmax", "memcpy", "gemm"]),
    ],
)
def test_siblings_are_sorted(order: str, expected: list[str], flame: Flame, trace: Path) -> None:
    options = ["--time", "1100ns/"] if order == "start" else []
    out = flame("view", trace, "--levels", "kernel", "--sort", order, *options).out
    icicle = out.split("self")[0]
    assert sorted(expected, key=icicle.index) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--show-stacks", "("], "--show-stacks: '(' is not a regular expression"),
        (["--min-percent", "half"], "'half' is not a number such as 0.5"),
        (["--min-percent", "nan"], "--min-percent nan: choose a number from 0 to 100"),
        (["--min-percent=-1"], "--min-percent -1: choose a number from 0 to 100"),
        (["--sort", "size"], "--sort: unknown order 'size': choose from weight, name, start"),
        (["--show-from", "nothing like this"], "nothing in the trace matches"),
    ],
)
def test_what_chooses_nothing_is_said(
    options: list[str], said: str, flame: Flame, trace: Path
) -> None:
    assert said in flame("view", trace, *options).complaint()


def test_numbers_fold_in_view_and_in_exports_on_request(flame: Flame, tmp_path: Path) -> None:
    path = tmp_path / "steps.folded"
    path.write_text("".join(f"main;step_{number} 1\n" for number in range(9)))
    assert "step_*" in flame("view", path, "--print").out
    assert "step_8" in flame("view", path, "--print", "--no-fold-numbers").out
    exact = flame("export", path, "-f", "folded", "-o", "-").out
    assert exact.splitlines() == [f"main;step_{number} 1" for number in range(9)]
    assert (
        flame("export", path, "-f", "folded", "-o", "-", "--fold-numbers").out == "main;step_* 9\n"
    )
    frames = flame("export", path, "-f", "speedscope", "-o", "-", "--fold-numbers").out
    assert '"step_*"' in frames and "step_0" not in frames
