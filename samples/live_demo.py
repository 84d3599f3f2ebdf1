#!/usr/bin/env python3
"""Watches a model run, without a GPU: `flame attach` on samples/workload_transformer.py.

The model runs on the test double of the CUDA driver, which needs a C++ compiler. It is stopped, and
what it has recorded is removed, when the app is left.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from inject import build  # noqa: E402

FOREVER = "1000000000"
NAMES = ("libcuda.so.1", "libcupti.so.13")


def double() -> Path:
    """The folder with the double as both libraries that it stands for, compiled where it is not."""
    folder = ROOT / "build" / "live"
    first, *others = (folder / name for name in NAMES)
    sources = sorted(build.DOUBLE.glob("*.cpp"))
    if not first.exists() or any(one.stat().st_mtime > first.stat().st_mtime for one in sources):
        build.compile_to(first, sources, "-O2", "-shared", "-fvisibility=hidden")
        for other in others:
            other.unlink(missing_ok=True)
            other.symlink_to(first.name)
    return folder


@contextmanager
def model(folder: Path) -> Iterator[int]:
    """The pid of the model while it runs, recorded into ``folder``."""
    script = ROOT / "samples" / "workload_transformer.py"
    words = [sys.executable, "-m", "flame", "record", "--quiet", "-o", str(folder), "--"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(double()), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*words, sys.executable, str(script), FOREVER],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    """Runs the app on the model until it is left."""
    with tempfile.TemporaryDirectory() as folder, model(Path(folder) / "model.flame") as pid:
        words = [sys.executable, "-m", "flame", "attach", str(pid)]
        return subprocess.call(words, env=os.environ | {"PYTHONPATH": str(ROOT)})


if __name__ == "__main__":
    sys.exit(main())
