"""Real machine code on the double: its functions, and samples at their instructions."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.sass.cubin import find_functions
from samples import make_six_levels, tiny_llm
from tests.support.profiles.project_tree import project_tree
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import meta, records, text

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples"
CUBIN = SAMPLES / "llm_kernels.cubin"
SOURCE = SAMPLES / "llm_kernels.cu"
KERNELS = (tiny_llm.GEMM, tiny_llm.SMALL_GEMM, tiny_llm.SOFTMAX, tiny_llm.NORM)
NOT_THERE = 500  # CUDA_ERROR_NOT_FOUND
PROGRAM = """
import ctypes, sys
from pathlib import Path

cuda = ctypes.CDLL("libcuda.so.1")
context, module = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
print(cuda.cuModuleLoadData(ctypes.byref(module), Path(sys.argv[1]).read_bytes()))
for name in sys.argv[2:]:
    kernel = ctypes.c_void_p()
    error = cuda.cuModuleGetFunction(ctypes.byref(kernel), module, name.encode())
    print(error or cuda.cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, None, None, None))
assert cuda.cuCtxSynchronize() == 0
"""

Env = Callable[..., dict[str, str]]


@pytest.fixture
def run(injected_env: Env, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Loads an image, launches kernels of it, and prints the error of each."""

    def do(image: Path, *names: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = injected_env(tmp_path / "dump", FAKE_TRUTH=str(tmp_path / "truth"), **more)
        command = [sys.executable, "-c", PROGRAM, str(image), *names]
        return subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    return do


def sizes(cubin: Path) -> dict[str, int]:
    """Bytes of the kernels' instructions."""
    with cubin.open("rb") as file:
        return {
            name: one.size
            for name, one in find_functions(file.fileno(), KERNELS, lambda: None).items()
        }


def test_it_has_the_kernels_that_the_cubin_has(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    others = ("gemm", "_ZN3llm4gemm", "$__internal_1_$__cuda_sm3x_div_rn_noftz_f32_slowpath", "")
    done = run(CUBIN, *KERNELS, *others)
    assert done.stdout.split() == ["0", *["0"] * 4, *[str(NOT_THERE)] * 4]


@pytest.mark.parametrize("size", [64, 1000, 20000])
def test_half_a_cubin_is_refused(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, size: int
) -> None:
    # As long as its header says: the driver cannot know where memory ends, either.
    whole = CUBIN.read_bytes()
    half = tmp_path / "half.cubin"
    half.write_bytes(whole[:size] + bytes(len(whole) - size))
    assert run(half).stdout == "200\n"


def test_samples_lie_within_the_kernel(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    run(CUBIN, *KERNELS, FLAME_PC="continuous")
    (dump,) = tmp_path.glob("dump/*.fdump")
    of = records(dump)
    places = {(text(of, int(row["function"])), int(row["offset"])) for row in of["sample"]}
    assert {name for name, _ in places} == set(KERNELS)
    length = sizes(CUBIN)
    assert all(offset % 16 == 0 and offset < length[name] for name, offset in places)


def test_a_script_says_what_kernels_wait_for(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    script = tmp_path / "script.txt"
    script.write_text(
        f"# one kernel of the two\nkernel {tiny_llm.GEMM} 5000 40 8320 16\n\n"
        f"sample {tiny_llm.GEMM} 0x2e0 long_scoreboard 7\n"
        f"sample {tiny_llm.GEMM} 768 13 5\n"
    )
    names = (tiny_llm.GEMM, tiny_llm.GEMM, tiny_llm.SOFTMAX)
    run(CUBIN, *names, FLAME_PC="continuous", FAKE_SAMPLES=str(script))
    (truth,) = tmp_path.glob("truth.*")
    found, durations = Counter[tuple[int, int]](), set()
    for row in map(json.loads, truth.read_text().splitlines()):
        if row["what"] == "sample" and row["function"] == tiny_llm.GEMM:
            found[row["offset"], row["reason"]] += row["samples"]
        if row["what"] == "kernel" and row["symbol"] == tiny_llm.GEMM:
            durations.add(row["end"] - row["start"])
            assert (row["registers"], row["static_shared"], row["local"]) == (40, 8320, 16)
    barrier = 13
    assert found == {(0x2E0, 4): 14, (768, barrier): 10}
    assert durations == {5000}


BAD = [
    ("kernel", "not understood: kernel"),
    ("kernel one", "not understood: kernel one"),
    ("sample one 0 wait 3", "not understood: sample one 0 wait 3"),
    (f"kernel {tiny_llm.GEMM} 1\nsample {tiny_llm.GEMM} 0 often 3", "not understood: sample"),
    (f"kernel {tiny_llm.GEMM} 1\nsample {tiny_llm.GEMM} 0 wait", "not understood: sample"),
    (
        f"kernel {tiny_llm.GEMM} 1\nsample {tiny_llm.GEMM} 1408 wait 3",
        f"{tiny_llm.GEMM} is shorter",
    ),
]


@pytest.mark.parametrize(("lines", "complaint"), BAD, ids=range(len(BAD)))
def test_a_script_with_a_mistake_ends_the_test(
    run: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    lines: str,
    complaint: str,
) -> None:
    script = tmp_path / "script.txt"
    script.write_text(lines)
    done = run(CUBIN, FAKE_SAMPLES=str(script))
    assert done.returncode == -signal.SIGABRT
    assert done.stderr.startswith(f"FAKE_SAMPLES: {complaint}")


# The sample that is made of it


def test_a_recording_of_no_machine_in_particular_holds_the_same(
    fake: Path, library: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "recorded"
    words = [sys.executable, "-m", "flame", "record", "-q", "--pc", "serialized", "-o", str(folder)]
    program = [sys.executable, str(make_six_levels.WORKLOAD), "2"]
    env = {**os.environ, "LD_LIBRARY_PATH": str(fake), "FLAME_LIBRARY": str(library)}
    subprocess.run([*words, "--", *program], env=env, check=True, capture_output=True)
    (dump,) = folder.glob("*.fdump")
    before = load(folder)
    dump.write_bytes(make_six_levels.neutral(dump.read_bytes()))
    after = load(folder)
    assert before.sampling is not None and after.sampling is not None
    assert before.sampling.exact.all() and len(after.sampling) == len(before.sampling)
    assert after.gpu_time == before.gpu_time and after.counts == before.counts
    trees = [project_tree(one, levels="python,nvtx,kernel,sass,stall") for one in (before, after)]
    assert trees[0].total.tolist() == trees[1].total.tolist()
    assert {key: meta(dump)[key] for key in ("host", "command")} == {
        "host": ["synthetic"],
        "command": ["python samples/tiny_llm.py"],
    }
    files = {frame.file for frame in after.frames.frames if "tiny_llm" in frame.file}
    assert files == {"samples/tiny_llm.py"}


def test_the_cubin_is_what_the_source_compiles_to(tmp_path: Path) -> None:
    folders = [str(one) for one in Path("/usr/local").glob("cuda*/bin")]
    compiler = shutil.which("nvcc", path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))
    if compiler is None:
        pytest.skip("no compiler for CUDA")
    made = tmp_path / "made.cubin"
    command = [compiler, "-arch=sm_90", "-lineinfo", "-cubin", "-o", str(made), str(SOURCE)]
    subprocess.run(command, check=True)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    if "release 13.0" in version.stdout:
        assert sizes(made) == sizes(CUBIN)
    assert set(sizes(made)) == set(sizes(CUBIN)) == set(KERNELS)
