"""Names under a naming, and which frames are shown as one."""

from __future__ import annotations

import pytest

from flame.core.errors import UsageError
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.names.rename import parse_rename
from flame.core.projection.labels import Labeller, Naming

GEMM = Frame(
    Kind.KERNEL, "gemm", extra=(("demangled", "void gemm<float>(float*)"), ("mangled", "_Z4gemm"))
)


def shown(frames: list[Frame], naming: Naming | None = None) -> list[tuple[str, int]]:
    """(name, place of the frame it is shown as) of each of ``frames``."""
    builder = FrameBuilder()
    ids = [builder.add(frame) for frame in frames]
    found = Labeller(naming or Naming()).labels(builder.build())
    return [(found.text[index], ids.index(int(found.shown[index]))) for index in ids]


@pytest.mark.parametrize(
    ("kernel_names", "name"),
    [("base", "gemm"), ("demangled", "void gemm<float>(float*)"), ("mangled", "_Z4gemm")],
)
def test_a_kernel_goes_by_the_name_asked_for(kernel_names: str, name: str) -> None:
    assert Naming(kernel_names).text(GEMM) == name


def test_without_a_mangled_name_the_demangled_one_serves() -> None:
    frame = Frame(Kind.KERNEL, "gemm", extra=(("demangled", "gemm(int)"),))
    assert Naming("mangled").text(frame) == "gemm(int)"


def test_a_kernel_with_one_name_keeps_it() -> None:
    assert Naming("mangled").text(Frame(Kind.KERNEL, "triton_poi_0")) == "triton_poi_0"


def test_kernel_names_are_of_kernels_only() -> None:
    frame = Frame(Kind.NVTX, "gemm", extra=(("demangled", "no"),))
    assert Naming("demangled").text(frame) == "gemm"


def test_unknown_kernel_names_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"'full'.*short, base, demangled, mangled"):
        Naming("full")


def test_renames_apply_to_the_name_that_is_shown() -> None:
    rules = (parse_rename("void ="), parse_rename("gemm=matmul"))
    assert Naming("demangled", rename=rules).text(GEMM) == "matmul<float>(float*)"


def test_kernels_that_differ_in_template_arguments_are_shown_as_one_base_name() -> None:
    half = Frame(Kind.KERNEL, "gemm", extra=(("demangled", "void gemm<half>(half*)"),))
    assert shown([GEMM, half]) == [("gemm", 0), ("gemm", 0)]
    assert [place for _, place in shown([GEMM, half], Naming("demangled"))] == [0, 1]


def test_renaming_folds_frames_into_one() -> None:
    layers = [Frame(Kind.NVTX, f"layers.{number}") for number in range(3)]
    folded = shown(layers, Naming(rename=(parse_rename(r"\d+=*"),)))
    assert folded == [("layers.*", 0)] * 3


def test_ranges_that_differ_in_shapes_are_shown_as_one() -> None:
    frames = [Frame(Kind.NVTX, "mul", extra=(("shapes", text),)) for text in ("[2]", "[3]")]
    assert shown(frames) == [("mul", 0), ("mul", 0)]


@pytest.mark.parametrize(
    "other",
    [
        Frame(Kind.NATIVE, "step", "train.py", 7),
        Frame(Kind.PYTHON, "step", "other.py", 7),
        Frame(Kind.PYTHON, "step", "train.py", 8),
        Frame(Kind.PYTHON, "step", "train.py", 7, (("captured", "yes"),)),
        Frame(Kind.PYTHON, "step", "train.py", 7, (("placed", "by GPU time"),)),
    ],
    ids=["kind", "file", "line", "captured", "placed"],
)
def test_frames_of_one_name_stay_apart_where_they_differ_in(other: Frame) -> None:
    frame = Frame(Kind.PYTHON, "step", "train.py", 7)
    assert shown([frame, other]) == [("step", 0), ("step", 1)]


def test_a_forward_operator_and_what_it_caused_backward_add_up() -> None:
    frames = [Frame(Kind.NVTX, "mul"), Frame(Kind.NVTX, "mul", extra=(("forward", "yes"),))]
    assert shown(frames) == [("mul", 0), ("mul", 0)]


def test_folding_is_of_ranges_and_comes_after_the_renames() -> None:
    rules = (parse_rename(r"\.7\.=.seventh."),)
    naming = Naming(rename=rules, fold=True)
    names = ["model.layers.7.mlp", "model.layers.18.mlp", "model.layers.3.mlp"]
    ranges = [Frame(Kind.NVTX, name) for name in names]
    folded = "model.layers.*.mlp"
    assert shown(ranges, naming) == [("model.layers.seventh.mlp", 0), (folded, 1), (folded, 1)]
    kernel = Frame(Kind.KERNEL, names[1])
    assert naming.text(kernel) == kernel.name


def test_folding_takes_the_numbers_of_modules_from_python_functions_alone() -> None:
    modules = [Frame(Kind.PYTHON, f"nn.Module: Linear_{number}") for number in (3, 14)]
    assert shown(modules, Naming(fold=True)) == [("nn.Module: Linear_*", 0)] * 2
    assert Naming(fold=True).text(Frame(Kind.FRAME, "nn.Module: Linear_3")).endswith("_3")


def test_numbers_in_names_sort_by_value_and_so_do_offsets() -> None:
    ordered = [
        "+0x0090 EXIT",
        "+0x00a0 BRA",
        "+0x0100 LDG.E R2, [R4]",
        "+0x10000 EXIT",
        "gemm+0x9",
        "gemm+0xf",
        "gemm+0x10",
        "gemm+0xa0",
        "gemm+0x100",
        "layers.2",
        "layers.10",
    ]
    builder = FrameBuilder()
    ids = [builder.add(Frame(Kind.SASS, name)) for name in reversed(ordered)]
    rank = Labeller(Naming()).labels(builder.build()).rank
    assert sorted(ids, key=rank.__getitem__) == ids[::-1]


def test_instructions_of_two_kernels_stay_apart_whatever_they_are_called() -> None:
    frames = [
        Frame(Kind.SASS, "+0x0000 EXIT", extra=(("function", name),))
        for name in ("gemm", "relu", "gemm")
    ]
    assert [place for _, place in shown(frames)] == [0, 1, 0]
