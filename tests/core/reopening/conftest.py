"""A cache of each test's own, for traces of any size, and traces to keep in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.loading.file import load_file
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, silent
from flame.core.reopening.profile_cache import ProfileCache
from tests.support.writers.nsysfile import HTOD, NsysFile

Find = Callable[..., Profile | None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which profiles are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("FLAME_CACHE_SIZE", "FLAME_CACHE_DAYS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "flame" / "profiles"


def any_size(finds: bool = True) -> ProfileCache:
    return ProfileCache(least=0, settled=0, finds=finds)


def keep(path: Path, options: LoadOptions | None = None) -> Profile:
    """Load a trace and keep it."""
    cache = any_size()
    profile = cache.load(path, options or LoadOptions(), load_file, silent)
    cache.write()
    return profile


def find(path: Path, options: LoadOptions | None = None) -> Profile | None:
    """Open a trace from the cache."""
    return any_size().find(path, options or LoadOptions(), load_file)


def written(path: Path, kernels: int = 40) -> Path:
    """Write a trace with all sorts of things in it."""
    with NsysFile(path) as file:
        file.process(100, "python")
        file.thread(100, 100, "main")
        for step in range(4):
            file.nvtx(f"step {step}", 1000 * step, 1000 * step + 990)
        for number in range(kernels):
            at = 4000 * number // kernels
            file.nvtx(f"layer {number % 3}", at, at + 40)
            if number % 4 == 0:
                file.nvtx(f"aten::mm, sizes = [[{number}, 8], [8, 4]]", at, at + 20)
            file.api("cudaLaunchKernel_v7000", at + 1, at + 5, corr=number + 1)
            file.kernel(f"gemm{number % 2}", at + 9, at + 30 + number, corr=number + 1)
        file.api("cudaMemcpyAsync_v3020", 3990, 3995, corr=1000)
        file.memcpy(HTOD, 3996, 4003, corr=1000)
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return written(tmp_path / "trace.sqlite")


def kept_file(home: Path) -> Path:
    """The only file that is kept."""
    [path] = home.iterdir()
    return path
