"""What tests of reports share: a folder, a script in the place of nsys, and a report."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.core.readers.nsys.report.conversions import HEAD, Nsys
from tests.support.writers.nsysfile import NsysFile


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder and a PATH of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FOLDER", str(tmp_path))
    for name in ("sh", "cp", "sleep"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.fixture
def nsys(folder: Path) -> Nsys:
    """Puts a script called nsys on PATH."""

    def install(script: str) -> None:
        path = folder / "bin" / "nsys"
        path.write_text(f"#!{folder}/bin/sh\n{script}")
        path.chmod(0o755)

    return install


@pytest.fixture
def report(folder: Path) -> Path:
    """A report, and the export that the stand-in makes of any report."""
    with NsysFile(folder / "made.sqlite") as file:
        file.kernel("gemm", 0, 100)
    path = folder / "run.nsys-rep"
    path.write_bytes(HEAD)
    return path
