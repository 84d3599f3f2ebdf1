"""Modules of a model among Python frames and ranges, and the level made of them."""

from __future__ import annotations

import pytest

from flame.core.model.frames import Frame, Kind
from flame.core.model.metrics import metric_of
from flame.core.projection.levels import recorded_levels
from flame.core.projection.modules import is_module
from flame.core.projection.named_levels import explain_missing_levels
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import Recorded, leaves


@pytest.mark.parametrize(
    ("kind", "name", "is_one"),
    [
        (Kind.PYTHON, "nn.Module: Linear_3", True),
        (Kind.PYTHON, "forward", False),
        (Kind.PYTHON, "model.layers.3", False),
        (Kind.NVTX, "model.layers.3.mlp", True),
        (Kind.NVTX, "h.3", True),
        (Kind.NVTX, "model.embed_tokens", False),
        (Kind.NVTX, "model.layers.3 extra", False),
        (Kind.NVTX, "model.layers.3.", False),
        (Kind.NVTX, "model..3", False),
        (Kind.NVTX, "model.3d.x3", False),
        (Kind.NVTX, "model", False),
        (Kind.NVTX, "3.5", False),
        (Kind.NVTX, "aten::mm", False),
        (Kind.KERNEL, "model.layers.3", False),
    ],
)
def test_modules_are_known_by_their_names(kind: Kind, name: str, is_one: bool) -> None:
    assert is_module(Frame(kind, name)) is is_one


def test_a_long_name_that_is_nearly_a_path_takes_no_time() -> None:
    assert not is_module(Frame(Kind.NVTX, "layer.1." * 100_000))
    assert is_module(Frame(Kind.NVTX, "layer.1." * 100_000 + "mlp"))


def test_layer_wise_tracing_says_what_is_a_module() -> None:
    detail = (("detail", "TrainableParams={weight: [8, 8]}"),)
    assert is_module(Frame(Kind.NVTX, "model.embed_tokens", extra=detail))
    assert not is_module(Frame(Kind.NVTX, "execute", extra=(("detail", "phase=context"),)))


def trace() -> Recorded:
    found = Recorded()
    found.function("main", 0, 100, 1)
    found.function("nn.Module: Block_0", 10, 90, 2, 1)
    found.range("aten::linear", 15, 85)
    found.function("nn.Module: Linear_3", 20, 80, 3, 2)
    for corr, time in ((1, 30), (2, 82), (3, 95)):
        found.call("cudaLaunchKernel", time, time + 1, corr=corr)
        found.kernel("gemm", 1_000 * corr, 1_000 * corr + 4**corr, corr=corr)
    return found


def test_the_level_has_modules_and_nothing_else() -> None:
    tree = project_tree(trace().profile(), "module,kernel")
    assert leaves(tree) == {
        ("nn.Module: Block_0", "nn.Module: Linear_3", "gemm"): 4,
        ("nn.Module: Block_0", "gemm"): 16,
        ("gemm",): 64,
    }
    folded = project_tree(trace().profile(), "module", fold=True)
    assert set(leaves(folded)) == {
        (),
        ("nn.Module: Block_*",),
        ("nn.Module: Block_*", "nn.Module: Linear_*"),
    }


def test_it_is_recorded_where_there_is_a_module() -> None:
    profile, gpu = trace().profile(), metric_of("gpu")
    assert {"module", "nested"} <= recorded_levels(profile, gpu)
    assert not explain_missing_levels(profile, gpu, ("module", "kernel"))
    bare = Recorded()
    bare.range("aten::mm", 0, 10)
    bare.call("cudaLaunchKernel", 5, 6, corr=1)
    bare.kernel("gemm", 20, 30, corr=1)
    profile = bare.profile()
    assert "module" not in recorded_levels(profile, gpu) and "nested" in recorded_levels(
        profile, gpu
    )
    assert "no modules" in explain_missing_levels(profile, gpu, ("module", "kernel"))
