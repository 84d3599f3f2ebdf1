"""``flame record --pc``: what was sampled has the text of its instructions, on any machine."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from flame.core.loading.many import load_all
from flame.core.model.profile import Profile
from flame.core.sass import nvdisasm
from tests.cli.conftest import PYTHON, Flame, Record, said
from tests.support.paths import SAMPLES
from tests.support.profiles.project_tree import project_tree

CUBIN = SAMPLES / "llm_kernels.cubin"
GEMM = "_ZN3llm4gemmILi16EEEvPKfS2_Pfi"
PROGRAM = f"""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")


def call(function, *arguments):
    code = getattr(cuda, function)(*arguments)
    assert code == 0, f"{{function}}: {{code}}"


def first():
    launch()


def second():
    launch()
    launch()


def launch():
    call("cuLaunchKernel", gemm, 1, 1, 1, 32, 1, 1, 0, None, None, None)


call("cuInit", 0)
context, module, gemm = (ctypes.c_void_p() for _ in range(3))
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
image = open({str(CUBIN)!r}, "rb").read()
call("cuModuleLoadData", ctypes.byref(module), image)
call("cuModuleGetFunction", ctypes.byref(gemm), module, {GEMM.encode()!r})
first()
second()
call("cuCtxSynchronize")
"""


@pytest.fixture(autouse=True)
def alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cache but one of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


@pytest.fixture
def tool() -> str:
    found = nvdisasm.find_disassembler()
    if found is None:
        pytest.skip("nvdisasm is not here")
    return found.path


def paths(profile: Profile, levels: str) -> Counter[tuple[str, ...]]:
    """PC samples by the names on ``levels``, all of the path."""
    tree = project_tree(profile, levels, metric="stalls")
    known: dict[int, tuple[str, ...]] = {0: ()}
    found: Counter[tuple[str, ...]] = Counter()
    for node in range(1, len(tree)):
        known[node] = (*known[int(tree.parent[node])], tree.name(node))
        found[known[node]] += int(tree.own[node])
    return +found


def test_the_recording_brings_the_text_of_its_instructions(
    tool: str, record: Record, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = record("--pc", "serialized", "-o", "run", *PYTHON, PROGRAM)
    assert done.returncode == 0, done.stderr
    assert any("PC samples at " in line and line.endswith(" instructions") for line in said(done))
    assert len(list((folder / "run" / "cubins").glob("*.sass"))) == 1
    # On a machine without nvdisasm, and without the cubins.
    shutil.rmtree(folder / "cache")
    monkeypatch.setenv(nvdisasm.PATH_VARIABLE, "/none")
    for cubin in (folder / "run" / "cubins").glob("*.cubin"):
        cubin.unlink()
    profile = load_all([folder / "run"])
    assert not any("no text" in warning for warning in profile.warnings)
    by_place = paths(profile, "python,kernel,sass")
    assert by_place
    assert all(path[-1].startswith("+0x") for path in by_place)
    # Each launch gives the same samples, and the second function launches twice.
    first = {path[-1]: count for path, count in by_place.items() if "first" in path}
    second = {path[-1]: count for path, count in by_place.items() if "second" in path}
    assert second == {name: 2 * count for name, count in first.items()}
    [code] = profile.sampling.codes if profile.sampling else []
    assert code.name == GEMM and all(code.text)
    assert code.files[0] == "samples/llm_kernels.cu"


def test_without_nvdisasm_it_is_told_how_to_get_it(
    record: Record, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(nvdisasm.PATH_VARIABLE, "/none")
    done = record("--pc", "continuous", "-o", "run", *PYTHON, PROGRAM)
    assert done.returncode == 0
    assert any("pip install nvidia-cuda-nvdisasm" in line for line in said(done))
    names = {path[-1].partition("+")[0] for path in paths(load_all([folder / "run"]), "sass")}
    assert names == {"gemm"}


def test_quietly_as_well(tool: str, record: Record, folder: Path) -> None:
    done = record("--quiet", "--pc", "continuous", "-o", "run", *PYTHON, PROGRAM)
    assert done.stderr == ""
    assert len(list((folder / "run" / "cubins").glob("*.sass"))) == 1


def test_without_sampling_there_is_nothing_to_keep(record: Record, folder: Path) -> None:
    done = record("-o", "run", *PYTHON, PROGRAM)
    assert not any("PC samples" in line for line in said(done))
    assert not (folder / "run" / "cubins").exists()


def test_no_variable_of_the_environment_is_kept(
    tool: str, record: Record, folder: Path, flame: Flame
) -> None:
    environment = {**os.environ, "SECRET_TOKEN": "hunter2"}
    record("--pc", "continuous", "-o", "run", *PYTHON, PROGRAM, env=environment)
    files = [one for one in (folder / "run").rglob("*") if one.is_file()]
    files += (folder / "cache").rglob("*.sass")
    assert files
    assert not any(b"hunter2" in one.read_bytes() for one in files)
