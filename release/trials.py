"""Try what is to be published: each file in an environment of its own, on a bundled sample."""

from __future__ import annotations

import platform
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from release.tools import PLACE, ROOT, ReleaseError, run

SAMPLE = ROOT / "samples" / "decode_small.sqlite"


def try_files(files: list[Path], version: str) -> list[str]:
    """Install or start each of ``files`` that runs here; returns a line for each.

    What is printed of the sample must be, byte for byte, what the sources print.
    """
    expected = run(sys.executable, "-m", "flame", "view", "--print", SAMPLE)
    return [f"{file.name}: {_try(file, version, expected)}" for file in files]


def _try(file: Path, version: str, expected: str) -> str:
    with TemporaryDirectory(prefix="trial.", dir=PLACE) as scratch:
        home = Path(scratch)
        if file.suffix == ".pyz":
            # Without what is installed for that Python: all that flame needs is in the file.
            bare = Path(sys.base_prefix, "bin", "python3")
            return _try_command([bare, "-I", "-S", file], home, version, expected)
        if file.suffix == ".whl" and not file.stem.endswith(("-any", platform.machine())):
            return "not run: of another machine"
        command = [_installed(file, home / "venv") / "flame"]
        return _try_command(command, home, version, expected)


def _installed(file: Path, folder: Path) -> Path:
    """Install ``file``, with what it asks for, into a new environment; returns its programs."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    run(*pip, file)
    run(*pip[:-2], "check")
    if not (folder / "share" / "man" / "man1" / "flame.1").exists():
        raise ReleaseError(f"{file.name} installs no manual pages")
    return folder / "bin"


def _try_command(command: Sequence[str | Path], home: Path, version: str, expected: str) -> str:
    environment = {"HOME": str(home), "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""}
    told = run(*command, "--version", cwd=home, **environment)
    if told != f"flame {version}\n":
        raise ReleaseError(f"{command[-1]} --version says {told.strip()!r}, not flame {version}")
    if run(*command, "view", "--print", SAMPLE, cwd=home, **environment) != expected:
        raise ReleaseError(f"{command[-1]} prints another view of {SAMPLE.name} than the sources")
    return "runs here"
