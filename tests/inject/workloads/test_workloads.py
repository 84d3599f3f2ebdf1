"""The workloads in samples/ run through `flame record`, and what comes out is what they do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.loading.many import load_all
from flame.core.model.profile import Profile
from flame.core.model.tree import Node
from samples import tiny_llm
from samples import workload_transformer as transformer
from tests.support.profiles.project_tree import project_tree

SAMPLES = Path(transformer.__file__).parent
PYTHON = [sys.executable, str(SAMPLES / "workload_transformer.py")]
TINY = [sys.executable, str(SAMPLES / "tiny_llm.py")]
STEPS = 5
BATCHES = 5


@pytest.fixture(scope="module")
def streams(compiled: Callable[..., Path]) -> str:
    return str(compiled("../../../samples/workload_streams.cpp", "-O1"))


@pytest.fixture
def recorded(fake: Path, library: Path, tmp_path: Path) -> Callable[..., Profile]:
    """What `flame record` makes of a command on the double."""

    def record(*command: str) -> Profile:
        folder = tmp_path / "recorded.flame"
        env = {**os.environ, "LD_LIBRARY_PATH": str(fake), "FLAME_LIBRARY": str(library)}
        run = [sys.executable, "-m", "flame", "record", "-q", "-o", str(folder), "--", *command]
        done = subprocess.run(run, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return load_all([folder])

    return record


def below(node: Node, *names: str) -> Node:
    """The node that is reached by these names."""
    for name in names:
        (node,) = [child for child in node.children if child.name == name]
    return node


def test_streams(recorded: Callable[..., Profile], streams: str) -> None:
    profile = recorded(streams, str(BATCHES))
    replayed, updates, threads = 4 * 2, 1, 2
    assert profile.counts["kernel"] == threads * BATCHES * (replayed + updates)
    assert profile.counts["memcpy"] == threads * BATCHES * 2
    assert profile.counts["memset"] == threads
    batch = below(project_tree(profile, levels="nvtx,kernel").root, "batch 3")
    assert below(batch, "layers", "capture", "linear", "gemm_kernel").count == threads * 4
    assert below(batch, "update", "axpy_kernel").count == threads
    assert {child.name for child in batch.children} == {"load", "layers", "update", "store"}


def test_transformer(recorded: Callable[..., Profile]) -> None:
    profile = recorded(*PYTHON, str(STEPS))
    products, relus, sums = 8, 2, 2
    forward = transformer.LAYERS * (products + relus + sums)
    weights = transformer.LAYERS * 6
    assert profile.counts["kernel"] == STEPS * (2 * forward + 2 * weights)
    ranges = below(project_tree(profile, levels="nvtx,kernel").root, "train_step")
    assert below(ranges, "forward", "layers.2", "attention", "qkv").count == 3 * STEPS
    served = below(project_tree(profile, levels="nvtx").root, "decode_step", "capture")
    assert below(served, "layers.2", "mlp").count == 4 * STEPS
    functions = {frame.name for frame in profile.frames.frames}
    assert {"Layer.__call__", "DriverGpu.launch", "serve"} <= functions


def test_tiny_llm(recorded: Callable[..., Profile]) -> None:
    profile = recorded(*TINY, "3")
    assert profile.counts["kernel"] == 3 * (tiny_llm.LAYERS * 11 + 1)
    step = below(project_tree(profile, levels="nvtx,kernel").root, "decode_step")
    attention = below(step, "layers.2", "self_attn", "attn")
    assert {child.name for child in attention.children} == {"aten::matmul", "aten::softmax"}
    assert below(attention, "aten::softmax", "softmax").count == 3


def test_without_a_driver_all_say_so_in_one_line(
    streams: str, injected_env: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    # Where there is a real driver, this finds a file that is none.
    (tmp_path / "libcuda.so.1").write_text("")
    env = injected_env(tmp_path / "dumps", fake=False, LD_LIBRARY_PATH=tmp_path)
    for command in ([streams], PYTHON, TINY):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == "no CUDA driver here: libcuda.so.1 not found\n"
