"""Run the tests of the app with several versions of Textual: `make test-textual`.

Without versions: the oldest and the newest that pyproject.toml allows. Each is installed into a
folder of its own in build/, which comes before what is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = "tests/tui"
_RANGE = re.compile(r'"textual>=([\d.]+),<=([\d.]+)"')


def main(words: list[str]) -> int:
    """Run the tests with each version that ``words`` name; returns the exit code."""
    results = {version: _test(version) for version in words or allowed()}
    for version, code in results.items():
        print(f"textual {version}: {'passed' if code == 0 else f'failed (exit {code})'}")
    return int(any(results.values()))


def allowed() -> list[str]:
    """Read the oldest and the newest version that pyproject.toml allows."""
    found = _RANGE.search((ROOT / "pyproject.toml").read_text("utf-8"))
    assert found, "pyproject.toml gives no range of Textual"
    return list(found.groups())


def _test(version: str) -> int:
    """Run the quick tests of the app with ``version``; returns the exit code."""
    folder = ROOT / "build" / "textual" / version
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    pip += ["--no-deps", "--upgrade", "--target", str(folder), f"textual=={version}"]
    subprocess.run(pip, check=True)
    print(f"textual {version}", flush=True)
    flags = os.environ.get("PYTEST_FLAGS", "-n 2 --dist worksteal").split()
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not deep", *flags, TESTS]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(folder)}
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
