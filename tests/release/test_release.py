"""``make release`` builds all files of a version from what is committed, and nothing else."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flame._version import __version__
from release.tools import ReleaseError
from release.trials import try_files
from tests.inject.conftest import locked
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE

pytestmark = [pytest.mark.deep, pytest.mark.long]

COMMITTED = ("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The sources as they are here, committed; with the programs that are in build/ already."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("no checkout")
    copy = tmp_path / "checkout"
    listed = succeed(
        "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT
    )
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    for words in (("init", "--quiet"), ("add", "--all"), (*COMMITTED, "-m", "Have all")):
        succeed("git", *words, cwd=copy)
    (ROOT / "build" / "release").mkdir(parents=True, exist_ok=True)
    (copy / "build").mkdir()
    (copy / "build" / "release").symlink_to(ROOT / "build" / "release")
    return copy


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=20 * PATIENCE,
        check=False,
    )


def succeed(*command: str, cwd: Path) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_release_is_whole_and_replaces_none(checkout: Path) -> None:
    machine = platform.machine()
    release = (sys.executable, "-m", "release", "--no-trial", "--machines", machine)
    with locked(ROOT / "build" / "release"):
        done = run(*release, cwd=checkout)
        if "No matching distribution" in done.stderr or "NewConnectionError" in done.stderr:
            pytest.skip("the programs that build a release cannot be had here")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Nothing is published, nothing tagged." in done.stdout
        folder = checkout / "dist" / f"flame-{__version__}"
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        packed = folder / f"flame-{__version__}-{python}-{machine}.pyz"
        pure = folder / f"flame_view-{__version__}-py3-none-any.whl"
        (wheel,) = folder.glob(f"*-manylinux_*_{machine}.whl")
        bill = folder / f"flame_view-{__version__}.cdx.json"
        sums, sdist = folder / "SHA256SUMS", folder / f"flame_view-{__version__}.tar.gz"
        assert set(folder.iterdir()) == {packed, pure, wheel, bill, sums, sdist}
        assert succeed("git", "status", "--porcelain", cwd=checkout) == ""
        assert succeed("git", "tag", cwd=checkout) == ""

        about = json.loads(bill.read_text())
        assert about["metadata"]["component"]["version"] == __version__
        names = {part["name"] for part in about["components"]}
        assert names >= {"numpy", "textual", "rich", "ziglang", "nvidia-nvtx"}

        assert try_files([pure, packed], __version__) == [
            f"{pure.name}: runs here",
            f"{packed.name}: runs here",
        ]
        with pytest.raises(ReleaseError, match="says 'flame"):
            try_files([packed], "9.9.9")

        sdist.write_text("another")
        done = run(*release, cwd=checkout)
        assert done.returncode == 1 and sdist.read_text() == "another"
        # All others are the same again, byte for byte.
        assert f"has other files of this version: {sdist.name} (" in done.stderr
