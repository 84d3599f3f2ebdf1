"""Run the quick tests on every Python that flame supports: `make test-pythons`.

An interpreter is looked for as ``pythonX.Y`` on PATH, among those of pyenv and uv, and under
FLAME_PYTHON314 (tests/attach/python314.sh makes one). Each gets an environment of its own in
build/; where there is none, that version is skipped, and said so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ((3, 11), (3, 12), (3, 13), (3, 14))
_FAILED = 1
_NO_TESTS = "pytest has not begun"
_IDENTIFY = "import sys; print(sys.version_info[0], sys.version_info[1])"


def main(words: list[str]) -> int:
    """Run the tests on each version, or on those that ``words`` name; returns the exit code."""
    chosen = [version for version in VERSIONS if not words or _name(version) in words]
    results = {version: _test(version) for version in chosen}
    for version, result in results.items():
        print(f"Python {_name(version)}: {result}")
    return 0 if results and all(" failed" not in result for result in results.values()) else _FAILED


def _name(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _test(version: tuple[int, int]) -> str:
    """Run the quick tests on ``version``; returns how that ended, in a line."""
    interpreter = next(filter(lambda path: is_version(path, version), candidates(version)), None)
    if interpreter is None:
        return "skipped: no such interpreter here (pyenv install, uv python install, apt install)"
    print(f"Python {_name(version)}: {interpreter}", flush=True)
    python = _environment(interpreter, ROOT / "build" / f"venv-{_name(version)}")
    command = [python, "-m", "pytest", "-q", "-m", "not deep", "-n", "2", "--dist", "worksteal"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        last = _NO_TESTS
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return last if process.returncode == 0 else f"{last} - failed (exit {process.returncode})"


def candidates(version: tuple[int, int]) -> Iterator[str]:
    name = _name(version)
    if named := os.environ.get(f"FLAME_PYTHON{name.replace('.', '')}"):
        yield named
    yield from filter(None, [shutil.which(f"python{name}")])
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{name}.*/bin/python"), reverse=True))
    if uv := shutil.which("uv"):
        found = subprocess.run([uv, "python", "find", name], capture_output=True, text=True)
        yield from found.stdout.split("\n")[:1]


def is_version(path: str, version: tuple[int, int]) -> bool:
    """Tell whether the program at ``path`` runs, and is that version: pyenv's shims may not."""
    try:
        asked = subprocess.run([path, "-c", _IDENTIFY], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return asked.stdout.split() == [*map(str, version)]


def _environment(interpreter: str, folder: Path) -> str:
    """Make a virtual environment with flame and its tools, unless it is there; returns its Python.

    Without a pip of its own: Debian's interpreters lack the wheel to install one from.
    """
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([interpreter, "-m", "venv", "--without-pip", folder], check=True)
    install = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    install += ["--python", python, "install"]
    subprocess.run([*install, "pip"], check=True)
    without_library = {**os.environ, "FLAME_NO_INJECT": "1"}
    subprocess.run([*install, "--editable", f"{ROOT}[dev]"], env=without_library, check=True)
    return python


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
