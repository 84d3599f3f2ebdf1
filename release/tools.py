"""Set up the programs that build and check releases, each of one version, by its hash."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = (ROOT / "build" / "release").resolve()
"""The folder of everything that may be removed: environments, caches, what is under way."""

LOCKED_TOOLS = ROOT / "release" / "tools.lock"
LOCKED_DEPENDENCIES = ROOT / "release" / "dependencies.lock"

EPOCH = "1580601600"
"""The time that every file in an archive has, 2020-02-02: the one that hatchling takes itself."""

_LEFT_OUT = "flame will "  # as hatch_build.py begins its warnings
_DISTURBING = ("FLAME_", "PYTHON", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CC", "CXX")


class ReleaseError(Exception):
    """The release is not made; the message says why, in one line and what a program wrote."""


def environment() -> Path:
    """Return the Python of the environment with the tools, set up where it is not."""
    folder = PLACE / "venv"
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = hashlib.sha256(LOCKED_TOOLS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    venv.create(folder, with_pip=True, clear=True)
    install_locked(python, LOCKED_TOOLS)
    stamp.write_text(wanted)
    return python


def install_locked(python: Path, lock: Path, *options: str | Path) -> None:
    """Install what ``lock`` names into the environment of ``python``, none of it compiled here."""
    pip = (python, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:")
    run(*pip, "--no-compile", "--require-hashes", "--requirement", lock, *options)


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command that must end well, and return what it wrote on standard output."""
    return _run(command, cwd, variables).stdout


def build(python: Path, source: Path, folder: Path, kind: str, **variables: str) -> Path:
    """Build the sdist or wheel (``--sdist``, ``--wheel``) of the sources, and return it.

    Raises ReleaseError where a library cannot be compiled, without which a wheel is built as well.
    """
    before = set(folder.iterdir())
    words = (python, "-m", "build", "--no-isolation", kind, "--outdir", folder, source)
    done = _run(words, folder, variables)
    if _LEFT_OUT in done.stdout + done.stderr:
        raise ReleaseError(f"a library was left out:\n{done.stdout}{done.stderr}".rstrip())
    (made,) = set(folder.iterdir()) - before
    return made


def _run(
    command: Sequence[str | Path], cwd: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command without variables that change what is built, and with one umask."""
    words = [str(word) for word in command]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DISTURBING)}
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env={**kept, "SOURCE_DATE_EPOCH": EPOCH, **variables},
            umask=0o022,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise ReleaseError(f"{error.filename}: no such program") from None
    if done.returncode:
        told = f"{done.stdout.rstrip()}\n{done.stderr.rstrip()}".strip()
        raise ReleaseError(f"{shlex.join(words)} failed:\n{told}")
    return done
