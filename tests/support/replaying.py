"""Run a fuzz target over its inputs without a fuzzer."""

from __future__ import annotations

import subprocess
from pathlib import Path

SEED = 7


def assert_no_harm(
    replayer: Path, corpus: Path, mutations: int, folder: Path, patience: float
) -> None:
    """Have ``replayer`` try all files of ``corpus`` and so many ``mutations``, in ``folder``."""
    inputs = sorted(map(str, corpus.iterdir()))
    done = subprocess.run(
        [replayer, str(SEED), str(mutations), *inputs],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == len(inputs)
