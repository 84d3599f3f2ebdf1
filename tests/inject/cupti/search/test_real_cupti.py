"""NVIDIA's own libcupti without a driver: it loads, records nothing, and the dump says why.

Of each release the library alone is kept, in build/cupti/, so that only the first run downloads.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.inject.conftest import locked
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, meta

pytestmark = pytest.mark.deep

KEPT = ROOT / "build" / "cupti" / platform.machine()
NOT_INITIALIZED = "cuptiSubscribe: CUPTI_ERROR_NOT_INITIALIZED (15)"
RELEASES = {
    "nvidia-cuda-cupti-cu12==12.1.105": NOT_INITIALIZED,
    "nvidia-cuda-cupti-cu12==12.8.90": NOT_INITIALIZED,
    "nvidia-cuda-cupti==13.0.85": "cuptiSubscribe: CUPTI_ERROR_UNKNOWN (999)",
    "nvidia-cuda-cupti==13.5.25": "cuptiGetVersion: an error without a name (999)",
}
LOAD = """
import ctypes, sys
for path in sys.argv[2:]:
    ctypes.CDLL(path)
assert ctypes.CDLL(sys.argv[1]).InitializeInjection() == 1
"""


@pytest.fixture(scope="module", autouse=True)
def _no_driver() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    pytest.skip("this machine has a driver")


def real(release: str, folder: Path) -> Path:
    """The libcupti of a release, put into ``folder``."""
    kept = KEPT / release
    with locked(kept):
        if not list(kept.glob("libcupti.so.*")):
            _download(release, kept)
    (path,) = kept.glob("libcupti.so.*")
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(path, folder))


def _download(release: str, kept: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--retries", "0", "--no-deps"]
    command = [*pip, "--only-binary", ":all:", "--dest", str(kept), release]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=5 * PATIENCE, check=False
    )
    if done.returncode:
        pytest.skip(f"{release} cannot be had: {done.stderr.splitlines()[-1]}")
    (wheel,) = kept.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if "/lib/libcupti.so." in name)
        part = kept / "part"
        part.write_bytes(archive.read(name))
        part.rename(kept / Path(name).name)
    wheel.unlink()


Said = Callable[..., dict[str, list[str]]]


@pytest.fixture
def said(injected_env: Callable[..., dict[str, str]], library: Path, tmp_path: Path) -> Said:
    """What the dump of a process says that starts the library, and loads others before."""

    def run(*before: Path, library: Path = library, **more: Path | str) -> dict[str, list[str]]:
        words = [sys.executable, "-c", LOAD, str(library), *map(str, before)]
        env = injected_env(tmp_path / "dumps", fake=False, **more)
        done = subprocess.run(
            words, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        (dump,) = (tmp_path / "dumps").glob("*.fdump")
        assert header(dump)["state"] == 1
        return meta(dump)

    return run


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_loaded_and_says_that_there_is_no_driver(
    release: str, said: Said, tmp_path: Path
) -> None:
    path = real(release, tmp_path / "named")
    facts = said(FLAME_CUPTI_PATH=path)
    assert facts["cupti"] == [f"{path}: {RELEASES[release]}"]
    assert "note" not in facts and "cupti_path" not in facts


def test_of_several_each_is_tried_and_told(said: Said, library: Path, tmp_path: Path) -> None:
    """Those of a wheel and a toolkit have one name, and both are asked nevertheless."""
    old, newer, new, newest = RELEASES
    wheels = tmp_path / "site-packages" / "nvidia"
    cupti = real(new, wheels / "cu13" / "lib")
    other = real(newer, wheels / "cuda_cupti" / "lib")
    runtime = Path(shutil.copy(library, cupti.with_name("libcudart.so.13")))
    own = tmp_path / "tool" / "flame" / library.name
    own.parent.mkdir(parents=True)
    shutil.copy(library, own)
    beside = real(old, own.parents[1] / "nvidia" / "cuda_cupti" / "lib")
    toolkit = real(newest, tmp_path / "toolkit" / "lib64")
    facts = said(runtime, library=own, LD_LIBRARY_PATH=toolkit.parent)
    tried = [
        (path, f"{path}: {RELEASES[release]}")
        for path, release in ((cupti, new), (toolkit, newest), (other, newer), (beside, old))
    ]
    (told,) = facts["cupti"]
    places = [told.index(text) for _, text in tried]
    assert places == sorted(places)
