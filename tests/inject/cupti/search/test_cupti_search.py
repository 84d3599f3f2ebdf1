"""Which of several libcupti is taken, and what is said where one does not suit or none is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inject import build
from tests.inject.conftest import SHARED, built
from tests.inject.cupti.cupti_recorded import PRELUDE, Record
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import meta

LAUNCH = """
context()
check(launch(kernel("one")))
synchronize()
"""
CUPTI, WHEEL = "libcupti.so.13", "site-packages/nvidia/cu13/lib"
UNKNOWN, NOT_INITIALIZED = "CUPTI_ERROR_UNKNOWN (999)", "CUPTI_ERROR_NOT_INITIALIZED (15)"


@pytest.fixture
def copy(fake: Path) -> Callable[..., Path]:
    """Puts a libcupti there that, as it is no part of the process's driver, does not suit it."""

    def make(path: Path) -> Path:
        sources = sorted(build.DOUBLE.glob("*.cpp"))
        double = built(path.name, sources, *SHARED, "-O2", f"-Wl,-soname,{path.name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(double, path))

    return make


@pytest.fixture
def suiting(fake: Path) -> Callable[..., Path]:
    """Puts the double there, which is a libcupti that suits the driver."""

    def make(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to((fake / "libcuda.so.1").resolve())
        return path

    return make


@pytest.fixture
def driver(suiting: Callable[..., Path], tmp_path: Path) -> Path:
    """A folder with a driver and no libcupti, unlike that of the double."""
    return suiting(tmp_path / "driver" / "libcuda.so.1").parent


@pytest.fixture
def own(library: Path, tmp_path: Path) -> Path:
    """The library of an installed flame, which lies in a folder of packages of its own."""
    path = tmp_path / "tool" / "flame" / library.name
    path.parent.mkdir(parents=True)
    return Path(shutil.copy(library, path))


def loading(*paths: Path) -> str:
    """The lines of a program that load these, before CUDA starts."""
    return "\n".join(["import ctypes", *(f"ctypes.CDLL({str(path)!r})" for path in paths), ""])


def refused(*paths: Path, why: str = UNKNOWN, function: str = "cuptiSubscribe") -> str:
    return "; ".join(f"{path}: {function}: {why}" for path in paths)


Maker = Callable[[Path], Path]


def test_the_likeliest_to_suit_is_tried_first(
    record: Record,
    copy: Maker,
    suiting: Maker,
    driver: Path,
    own: Path,
    tmp_path: Path,
) -> None:
    loaded = copy(tmp_path / "loaded" / CUPTI)
    toolkit = copy(tmp_path / "toolkit" / "lib64" / CUPTI)
    extras = copy(toolkit.parent / ".." / "extras" / "CUPTI" / "lib64" / CUPTI)
    runtime = copy(toolkit.with_name("libcudart.so.13"))
    wheel = copy(tmp_path / "program" / WHEEL / CUPTI)
    package = copy(tmp_path / "program" / "site-packages" / "other" / "lib.so")
    beside = copy(own.parents[1] / "nvidia" / "cu13" / "lib" / CUPTI)
    path = suiting(tmp_path / "path" / CUPTI)
    recorded = record(
        LAUNCH,
        before=loading(package, runtime, loaded),
        fake=driver,
        LD_LIBRARY_PATH=f"{driver}:{path.parent}",
        CUDA_INJECTION64_PATH=own,
    )
    assert len(recorded.of["kernel"]) == 1
    others = refused(loaded, toolkit, extras, wheel, beside)
    assert recorded.meta["cupti_refused"] == [others]
    (used,) = recorded.meta["cupti_path"]
    assert Path(used).samefile(path)
    assert recorded.meta["note"] == [f"recorded with {used}, because of {others}"]
    assert recorded.meta["cupti"] == ["13.0.1"]


@pytest.mark.parametrize(
    ("version", "why", "function"),
    [
        ("28", NOT_INITIALIZED, "cuptiSubscribe"),
        ("130001", UNKNOWN, "cuptiSubscribe"),
        ("130500", UNKNOWN, "cuptiGetVersion"),
    ],
)
def test_wheels_of_the_runtime_come_before_those_of_flame(
    record: Record,
    copy: Maker,
    suiting: Maker,
    driver: Path,
    own: Path,
    tmp_path: Path,
    version: str,
    why: str,
    function: str,
) -> None:
    """The runtime is of CUDA 12, and so is what is tried first; beside flame there are both."""
    nvidia = tmp_path / "program" / "site-packages" / "nvidia"
    runtime = copy(nvidia / "cuda_runtime" / "lib" / "libcudart.so.12")
    cupti = copy(nvidia / "cuda_cupti" / "lib" / "libcupti.so.12")
    beside = copy(own.parents[1] / "nvidia" / "cuda_cupti" / "lib" / "libcupti.so.12")
    suiting(own.parents[1] / "nvidia" / "cu13" / "lib" / CUPTI)
    recorded = record(
        LAUNCH,
        before=loading(runtime),
        fake=driver,
        CUDA_INJECTION64_PATH=own,
        FAKE_CUPTI=f"version:{version}",
    )
    assert len(recorded.of["kernel"]) == 1
    assert recorded.meta["cupti_refused"] == [refused(cupti, beside, why=why, function=function)]


@pytest.mark.parametrize(
    ("major", "runtime_folder", "cupti_folder", "version"),
    [(13, "cu13/lib", "cu13/lib", "130001"), (12, "cuda_runtime/lib", "cuda_cupti/lib", "28")],
)
def test_one_that_suits_is_recorded_with_and_no_other_is_tried(
    record: Record,
    copy: Maker,
    suiting: Maker,
    driver: Path,
    tmp_path: Path,
    major: int,
    runtime_folder: str,
    cupti_folder: str,
    version: str,
) -> None:
    """As with PyTorch's wheels while LD_LIBRARY_PATH has the CUPTI of another toolkit."""
    nvidia, name = tmp_path / "site-packages" / "nvidia", f"libcupti.so.{major}"
    runtime = copy(nvidia / runtime_folder / f"libcudart.so.{major}")
    cupti = suiting(nvidia / cupti_folder / name)
    toolkit = copy(tmp_path / "toolkit" / name)
    recorded = record(
        LAUNCH,
        before=loading(runtime),
        fake=driver,
        LD_LIBRARY_PATH=f"{driver}:{toolkit.parent}",
        FAKE_CUPTI=f"version:{version}",
    )
    assert len(recorded.of["kernel"]) == 1
    (used,) = recorded.meta["cupti_path"]
    assert Path(used).samefile(cupti)
    assert "cupti_refused" not in recorded.meta and "note" not in recorded.meta


def test_what_was_tried_is_said_where_none_suits(
    record: Record,
    copy: Maker,
    driver: Path,
    tmp_path: Path,
) -> None:
    runtime = copy(tmp_path / WHEEL / "libcudart.so.13")
    cupti, other = copy(runtime.with_name(CUPTI)), copy(tmp_path / "path" / CUPTI)
    recorded = record(
        LAUNCH,
        before=loading(runtime),
        fake=driver,
        LD_LIBRARY_PATH=f"{driver}:{other.parent}",
    )
    assert not len(recorded.of["kernel"])
    (why,) = recorded.meta["cupti"]
    # This machine may have others, and their driver is not there.
    assert why.startswith(refused(cupti, other))


def test_the_named_one_is_the_only_one(
    record: Record,
    fake: Path,
) -> None:
    named = fake / CUPTI
    recorded = record(LAUNCH, FLAME_CUPTI_PATH=named, FAKE_CUPTI="no_init")
    assert not len(recorded.of["kernel"])
    (why,) = recorded.meta["cupti"]
    assert why.endswith(f": cuptiSubscribe: {UNKNOWN}") and why.count(UNKNOWN) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="toolkits can only be hidden by root")
@pytest.mark.parametrize(
    ("version", "package"), [("130001", "nvidia-cuda-cupti "), ("28", "nvidia-cuda-cupti-cu12 ")]
)
def test_an_image_without_cupti(
    injected_env: Callable[..., dict[str, str]],
    driver: Path,
    tmp_path: Path,
    version: str,
    package: str,
) -> None:
    """As NVIDIA's base and runtime images are: what this machine has in /usr/local is hidden."""
    hide = (
        'for each in /usr/local/cuda*/; do mount -t tmpfs none "$each" || exit 99; done; exec "$@"'
    )
    code = PRELUDE + LAUNCH
    env = injected_env(tmp_path / "dumps", fake=driver, FAKE_CUPTI=f"version:{version}")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", hide, "sh", sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"toolkits cannot be hidden here: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")
    facts = meta(next((tmp_path / "dumps").glob("*.fdump")))
    if facts["cupti"][0].startswith("/"):
        pytest.skip(f"this machine has one: {facts['cupti']}")
    assert facts["cupti"] == ["no libcupti found"]
    (note,) = facts["note"]
    assert "launches and kernels are not recorded, NVTX ranges are" in note
    assert f"base and runtime images come without: pip install {package}" in note
