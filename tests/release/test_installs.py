"""Whoever installs a wheel, by whatever means, has a flame that works, and is rid of it again.

The wheel is the one without compiled parts: it is that of every system. What cannot be had here, an
installer or an interpreter or what flame depends on, is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from flame._version import __version__
from tests.pythons import VERSIONS, candidates, is_version
from tests.support.paths import ROOT, SAMPLES
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.deep

DECODE = SAMPLES / "decode_small.sqlite"
PYTORCH = SAMPLES / "torch_small.pt.trace.json.gz"
PAGES = ("flame.1", "flame-view.1")
# For the Python that runs the tests, pipx and uv install it.
OTHERS = [version for version in VERSIONS if version != sys.version_info[:2]]


def run(
    *command: str | Path, cwd: Path = ROOT, env: Mapping[str, str | Path] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": ""} | {k: str(v) for k, v in (env or {}).items()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
        check=False,
    )


def succeed(
    *command: str | Path, cwd: Path = ROOT, env: Mapping[str, str | Path] | None = None
) -> str:
    done = run(*command, cwd=cwd, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def attempt(*command: str | Path, env: Mapping[str, str | Path] | None = None) -> None:
    """Run what needs a package index; skip where it does not work."""
    done = run(*command, env=env)
    if done.returncode:
        pytest.skip(f"cannot be had here: {(done.stderr or done.stdout).strip()[-200:]}")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, ROOT)
    succeed(*build, env={"FLAME_NO_INJECT": "1", "FLAME_NO_NATIVE": "1"})
    (found,) = folder.glob("*-py3-none-any.whl")
    return found


@pytest.fixture
def installer(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The program of an installer, in an environment of its own."""
    folder = tmp_path / "installer"
    venv.create(folder, with_pip=True)
    attempt(folder / "bin" / "pip", "install", "--quiet", "--no-compile", request.param)
    yield folder / "bin" / request.param


def check_works(flame: Path, home: Path) -> None:
    """Try the commands that only view; nothing of them is left in the home folder."""
    home.mkdir()
    elsewhere = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    env = {"HOME": str(home), **dict.fromkeys(elsewhere, "")}

    def told(*words: str | Path) -> str:
        return succeed(flame, *words, cwd=home, env=env)

    assert told("--version") == f"flame {__version__}\n"
    assert "GPU time 371 ms" in told("view", DECODE, "--print")
    assert "GPU" in told("report", PYTORCH)
    assert "same" in told("diff", DECODE, DECODE).lower()
    folded = told("export", "-f", "folded", "-o", "-", DECODE)
    assert sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()) > 370_000_000
    assert "complete" in told("completion", "bash")
    assert [path for path in home.rglob("*") if path.is_file()] == []


def left_below(folder: Path) -> list[str]:
    """What is called after flame there."""
    found = (path.relative_to(folder) for path in folder.rglob("*flame*"))
    return sorted(path.as_posix() for path in found if path.suffix != ".lock")  # pipx's own


@pytest.mark.parametrize("installer", ["pipx"], indirect=True)
def test_pipx_installs_it_with_its_manual_and_removes_all_of_it(
    installer: Path, wheel: Path, tmp_path: Path
) -> None:
    place = tmp_path / "pipx"
    env = {
        "PIPX_HOME": place / "home",
        "PIPX_BIN_DIR": place / "bin",
        "PIPX_MAN_DIR": place / "man",
    }
    attempt(installer, "install", "--python", sys.executable, wheel, env=env)
    check_works(place / "bin" / "flame", tmp_path / "home")
    for page in PAGES:
        assert (place / "man" / "man1" / page).exists()
    succeed(installer, "uninstall", "flame-view", env=env)
    assert left_below(place) == []


@pytest.mark.parametrize("installer", ["uv"], indirect=True)
def test_uv_installs_it_and_removes_all_of_it(installer: Path, wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "uv"
    env = {"UV_TOOL_DIR": place / "tools", "UV_TOOL_BIN_DIR": place / "bin"}
    attempt(installer, "tool", "install", "--python", sys.executable, wheel, env=env)
    check_works(place / "bin" / "flame", tmp_path / "home")
    succeed(installer, "tool", "uninstall", "flame-view", env=env)
    assert left_below(place) == []


@pytest.mark.parametrize("version", OTHERS, ids=lambda version: ".".join(map(str, version)))
def test_pip_installs_it_for_every_other_python_and_removes_all_of_it(
    version: tuple[int, int], wheel: Path, tmp_path: Path
) -> None:
    interpreter = next((one for one in candidates(version) if is_version(one, version)), None)
    if interpreter is None:
        pytest.skip("no such interpreter here")
    folder = tmp_path / "venv"
    succeed(interpreter, "-m", "venv", "--without-pip", folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    # Of what flame depends on little is imported; pip would compile all of it.
    attempt(*pip, "install", "--quiet", "--no-compile", "--only-binary", ":all:", wheel)
    check_works(folder / "bin" / "flame", tmp_path / "home")
    pages = folder / "share" / "man" / "man1"
    assert {path.name for path in pages.iterdir()} >= set(PAGES)
    succeed(*pip, "uninstall", "--quiet", "--yes", "flame-view")
    assert left_below(folder) == []
