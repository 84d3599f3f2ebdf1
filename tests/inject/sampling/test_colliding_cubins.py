"""Cubins that CUPTI's checksum cannot tell apart: each is kept, and none is taken for another."""

from __future__ import annotations

import ctypes
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.external import package_folders
from flame.core.loading.many import load
from flame.core.model.pc_samples import Code
from flame.core.model.profile import Profile
from flame.core.options import silent
from flame.core.readers.fdump.samples import read_sampled_functions
from flame.core.sass import nvdisasm
from flame.core.sass.disassembly import store_codes
from tests.support.generated.colliding_cubins import SOFTMAX, STEP_AT, cubin_adding, text_of
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import records

Env = Callable[..., dict[str, str]]
Run = Callable[..., Path]
NEXT_AT = STEP_AT + 16
NEXT_TEXT = "IADD3 R7, P2, R7, 0x80, RZ"
PROGRAM = """
import ctypes, sys
from pathlib import Path

cuda = ctypes.CDLL("libcuda.so.1")
context, kernel = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
loaded = []
for word in sys.argv[2:]:
    if word == "unload":
        assert cuda.cuModuleUnload(loaded.pop()) == 0
    elif word == "run":
        assert cuda.cuModuleGetFunction(ctypes.byref(kernel), loaded[-1], sys.argv[1].encode()) == 0
        assert cuda.cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, None, None, None) == 0
        assert cuda.cuCtxSynchronize() == 0
    else:
        loaded.append(ctypes.c_void_p())
        image = Path(word).read_bytes()
        assert cuda.cuModuleLoadData(ctypes.byref(loaded[-1]), image) == 0
"""


@pytest.fixture
def run(injected_env: Env, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Load cubins that add so much, "run" and "unload" the last; return the dump."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def do(*words: int | str, mode: str = "continuous") -> Path:
        script = tmp_path / "samples.txt"
        script.write_text(
            f"kernel {SOFTMAX} 5000\n"
            + "".join(f"sample {SOFTMAX} {at} wait 7\n" for at in (STEP_AT, NEXT_AT))
        )
        for step in words:
            if isinstance(step, int):
                (tmp_path / str(step)).write_bytes(cubin_adding(step))
        env = injected_env(tmp_path / "dump", FLAME_PC=mode, FAKE_SAMPLES=script)
        subprocess.run(
            [sys.executable, "-c", PROGRAM, SOFTMAX, *map(str, words)],
            env=env,
            cwd=tmp_path,
            check=True,
            timeout=PATIENCE,
        )
        (dump,) = tmp_path.glob("dump/*.fdump")
        return dump

    return do


def texts(profile: Profile) -> set[tuple[str, str]]:
    """The text of the two sampled instructions in each code that has samples."""
    assert profile.sampling is not None
    return {(_text(code, STEP_AT), _text(code, NEXT_AT)) for code in profile.sampling.codes}


def _text(code: Code, offset: int) -> str:
    return str(code.text[code.offset.tolist().index(offset)])


def needs_nvdisasm() -> None:
    if nvdisasm.find_disassembler() is None:
        pytest.skip("nvdisasm is not here")


def test_cubins_of_one_checksum_are_all_kept(run: Run) -> None:
    dump = run(0x20, 0x21, 0x22)
    modules = records(dump)["module"]
    assert len(set(modules["crc"].tolist())) == 1
    kept = {path.read_bytes() for path in (dump.parent / "cubins").iterdir()}
    assert kept == {cubin_adding(step) for step in (0x20, 0x21, 0x22)}


def test_text_is_shown_only_where_those_that_may_be_meant_agree(run: Run) -> None:
    needs_nvdisasm()
    profile = load(run(0x20, 0x21, "run"))
    [(differs, agrees)] = texts(profile)
    assert (differs, agrees) == ("[2 cubins differ]", NEXT_TEXT)
    [said] = [said for said in profile.warnings if "share CUPTI's checksum" in said]
    assert said.startswith("2 cubins share CUPTI's checksum: the instructions of 1 function")


def test_the_only_cubin_of_a_checksum_is_it(run: Run) -> None:
    needs_nvdisasm()
    profile = load(run(0x21, "run", 0x21, "run"))
    assert texts(profile) == {(text_of(0x21), NEXT_TEXT)}
    assert not [said for said in profile.warnings if "checksum" in said]


def test_a_cubin_that_was_unloaded_before_is_not_meant(run: Run) -> None:
    needs_nvdisasm()
    # The first look after it may still bring what was sampled before.
    dump = run(0x20, "run", "unload", 0x21, *["run"] * 4, mode="serialized")
    found = texts(load(dump))
    assert (text_of(0x21), NEXT_TEXT) in found
    of = records(dump)
    [ended] = of["module_end"]
    assert (ended["module"], ended["context"]) == tuple(of["module"][0][["module", "context"]])
    assert ended["time"] > of["module"][0]["time"]


@pytest.mark.parametrize("mode", ["continuous", "serialized"])
def test_instructions_that_record_keeps_are_those_of_each_cubin(run: Run, mode: str) -> None:
    needs_nvdisasm()
    dump = run(0x20, 0x21, "run", mode=mode)
    assert store_codes(dump.parent, read_sampled_functions(dump), silent)
    kept = {path.name for path in (dump.parent / "cubins").glob("*.sass")}
    assert kept == {f"{path.stem}.sass" for path in (dump.parent / "cubins").glob("*.cubin")}
    assert len(kept) == 2
    for path in (dump.parent / "cubins").glob("*.cubin"):
        path.unlink()
    assert texts(load(dump)) == {("[2 cubins differ]", NEXT_TEXT)}


# What the double computes


def real_checksum() -> Callable[[bytes], int]:
    """CUPTI's own, which needs neither GPU nor driver."""
    for folder in package_folders():
        for path in folder.glob("nvidia/cu1*/lib/libcupti.so.1?"):
            return checksum_of(path)
    pytest.skip("there is no libcupti in a wheel here")


class Parameters(ctypes.Structure):
    """CUpti_GetCubinCrcParams."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("cubin_size", ctypes.c_size_t),
        ("cubin", ctypes.c_char_p),
        ("crc", ctypes.c_uint64),
    )


def checksum_of(library: Path) -> Callable[[bytes], int]:
    compute = ctypes.CDLL(str(library)).cuptiGetCubinCrc

    def do(cubin: bytes) -> int:
        parameters = Parameters(ctypes.sizeof(Parameters), len(cubin), cubin, 0)
        assert compute(ctypes.byref(parameters)) == 0
        return int(parameters.crc)

    return do


@pytest.mark.parametrize("size", [1, 2, 3, 31, 32, 33, 64, 65, 1000, 4097, 36808, 100_000])
def test_the_double_looks_at_the_bytes_that_cupti_looks_at(fake: Path, size: int) -> None:
    real, doubled = real_checksum(), checksum_of(fake / "libcupti.so.13")
    draw = random.Random(size)
    cubin = draw.randbytes(size)
    told_apart = 2 * (size - 1).bit_length()
    for at in {*draw.sample(range(size), min(size, 500)), *_looked_at(size, told_apart)}:
        other = cubin[:at] + bytes([cubin[at] ^ 0x41]) + cubin[at + 1 :]
        sees = at in _looked_at(size, told_apart)
        assert (real(other) != real(cubin)) == (doubled(other) != doubled(cubin)) == sees
    assert real(cubin + b"\0") != real(cubin) and doubled(cubin + b"\0") != doubled(cubin)


def _looked_at(size: int, count: int) -> set[int]:
    return {number * size // count for number in range(count)}


def test_these_cubins_collide_in_cupti() -> None:
    real = real_checksum()
    assert len({real(cubin_adding(step)) for step in range(0x20, 0x30)}) == 1
    assert len({cubin_adding(step) for step in range(0x20, 0x30)}) == 16
    assert text_of(0x20) == "VIADD R8, R8, 0x20"
