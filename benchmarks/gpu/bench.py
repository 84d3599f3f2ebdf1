"""Run programs for a check: alone, with the probe, or recorded by flame; keep what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.gpu.check import CheckSkippedError
from benchmarks.gpu.recording import Done, Recording
from flame.record.environment import INJECTIONS, library_path
from inject import build

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = Path(__file__).with_name("workloads")
TRANSFORMER = [sys.executable, str(ROOT / "samples" / "workload_transformer.py")]
FLAME = [sys.executable, "-m", "flame"]
PROBE = Path(__file__).with_name("probe")
PATIENCE = 600.0
"""Seconds; the runner gives up a check long before."""
Env = Mapping[str, str]
NOTHING: Env = {}
PAUSE_S, LONGEST_END_S = 0.02, 30.0
EXACT = ("-O2", "-shared", "-fvisibility=hidden", "-static-libstdc++", "-static-libgcc")


class ProgramFailedError(Exception):
    """A program of a check ended in another way than it should."""


class Bench:
    """Run programs of one check, with its files below ``folder``, fewer steps if ``quick``."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self.runs = 0

    def size(self, quick: int, full: int) -> int:
        """Choose by tier."""
        return quick if self.quick else full

    def workload(self, name: str, *words: object) -> list[str]:
        """Make the command of a program of `workloads/`."""
        return [sys.executable, str(WORKLOADS / name), *map(str, words)]

    def run(self, command: list[str], code: int | None = 0, env: Env = NOTHING) -> Done:
        """Run ``command``, keep its output in files; ProgramFailedError if it ends otherwise."""
        self.runs += 1
        names = [self.folder / f"{self.runs:02}.{kind}" for kind in ("out", "err")]
        begin = time.monotonic()
        with names[0].open("wb") as out, names[1].open("wb") as errors:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                timeout=PATIENCE,
                check=False,
            )
        seconds = time.monotonic() - begin
        out_text, error_text = (name.read_text("utf-8", "replace") for name in names)
        if code is not None and done.returncode != code:
            last = (error_text.strip() or out_text.strip() or "no output").splitlines()[-1]
            raise ProgramFailedError(
                f"{Path(command[-1]).name}: exit code {done.returncode}: {last}"
            )
        return Done(done.returncode, out_text, error_text, seconds)

    def record(
        self,
        command: list[str],
        *options: str,
        name: str = "recorded",
        code: int | None = 0,
        env: Env = NOTHING,
    ) -> Recording:
        """Record ``command`` into the folder ``name``, with what the library says in a file."""
        folder = self.folder / f"{name}.flame"
        words = [*FLAME, "record", "-q", "-o", str(folder), *options, "--", *command]
        done = self.run(words, code, {"FLAME_DEBUG": "1", **env})
        return Recording(folder, done)

    def injected(self, command: list[str], name: str, env: Env = NOTHING) -> Recording:
        """Record ``command`` without `flame record`, which sets some of the library's switches."""
        folder, library = self.folder / name, str(library_path())
        injections = dict.fromkeys(INJECTIONS, library)
        done = self.run(command, 0, {**injections, "FLAME_DIR": str(folder), **env})
        return Recording(folder, done)

    def probed(self, command: list[str], env: Env = NOTHING) -> dict[str, Any]:
        """Run ``command`` with the probe in it; return what that saw."""
        out = self.folder / f"probe-{self.runs + 1}.json"
        library = str(self.probe_library())
        injected = {"CUDA_INJECTION64_PATH": library, "PROBE_OUT": str(out)}
        self.run(command, 0, {**injected, **env})
        try:
            found: dict[str, Any] = json.loads(out.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ProgramFailedError(f"the probe said nothing: {error}") from error
        return found

    def probe_library(self) -> Path:
        """Build the probe, once for all checks."""
        return self.built("libprobe.so", sorted(PROBE.glob("*.cpp")), *EXACT)

    def built(self, name: str, sources: list[Path], *flags: str) -> Path:
        """Compile to a file beside the folders of the checks, unless that has been done."""
        target = self.folder.parent / "built" / name
        headers = [path for source in sources for path in source.parent.glob("*.h")]
        newest = max(path.stat().st_mtime for path in [*sources, *headers])
        if not target.exists() or target.stat().st_mtime < newest:
            build.compile_to(target, sources, *flags, objects=build.OBJECTS)
        return target


@contextmanager
def running(bench: Bench, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``command`` beside the block; it is asked to end after that, and must."""
    with (bench.folder / "running.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(LONGEST_END_S)


def until(look: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Return as soon as ``look`` finds something; ProgramFailedError if the program ends before.

    There is no limit of time: the check has one.
    """
    while not look():
        if process.poll() is not None:
            raise ProgramFailedError(f"it has ended with exit code {process.returncode}")
        time.sleep(PAUSE_S)


def skip_unless_permitted(text: str) -> None:
    """Raise CheckSkippedError where ``text`` says that PCs may not be sampled here."""
    if "NVreg_RestrictProfilingToAdminUsers" in text or "INSUFFICIENT_PRIVILEGES" in text:
        raise CheckSkippedError(
            "permission to sample PCs (root, or NVreg_RestrictProfilingToAdminUsers=0)"
        )
