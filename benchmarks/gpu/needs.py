"""Find out what this machine has of what checks need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from flame.core.errors import UsageError
from flame.doctor.check import probe
from flame.record.environment import library_path
from inject import build

PATIENCE = 120.0
"""Seconds for the first import of PyTorch, from a disk that has not seen it for long."""
ASK_TORCH = "import torch, sys; sys.exit(not torch.cuda.is_available())"


def gpu() -> str:
    """Look for a driver with a GPU, in a process of its own; the double of the driver is one."""
    found = probe("driver")
    return "" if found.get("gpus") else f"a GPU ({found.get('error', 'the driver has none')})"


def hardware() -> str:
    """Look for a GPU that is no double: the runtime wants more of a driver than that has."""
    gpus = probe("driver").get("gpus", [])
    double = bool(gpus) and all(name.startswith("Simulated GPU") for name in gpus)
    return "a GPU that is not the test double's" if double else ""


def library() -> str:
    """Look for the injection library."""
    try:
        library_path()
    except UsageError as error:
        return str(error)
    return ""


def compiler() -> str:
    """Look for what native programs and the probe are built with."""
    try:
        build.compiler()
        build.includes()
    except build.BuildError as error:
        return str(error).splitlines()[0]
    return ""


def module(name: str) -> str:
    """Look for a Python module, without importing it."""
    return "" if find_spec(name) else f"the Python module {name}"


def torch() -> str:
    """Look for a PyTorch that finds a GPU, in a process of its own: it may hang in the driver."""
    if missing := module("torch"):
        return missing
    command = [sys.executable, "-c", ASK_TORCH]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"PyTorch (no answer in {PATIENCE:.0f} s)"
    lines = done.stderr.strip().splitlines() or ["it finds no GPU"]
    return f"PyTorch with CUDA ({lines[-1]})" if done.returncode else ""


def program(name: str) -> str:
    """Look for a program."""
    return "" if shutil.which(name) else f"the program {name}"


def root() -> str:
    """Ask whether this is root, which may use counters wherever anybody may."""
    return "" if os.geteuid() == 0 else "root"


QUESTIONS: dict[str, Callable[[], str]] = {
    "gpu": gpu,
    "hardware": hardware,
    "library": library,
    "compiler": compiler,
    "torch": torch,
    "root": root,
    **{name: partial(module, name) for name in ("nvtx", "triton", "jax", "cupy")},
    **{name: partial(program, name) for name in ("nvcc", "ncu", "cuobjdump")},
}
"""By name: what says what is lacking, nothing where it is there."""


class Needs:
    """Ask each question once."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}

    def lacking(self, names: tuple[str, ...]) -> list[str]:
        """List what is missing of these, in words."""
        for name in names:
            if name not in self.answers:
                self.answers[name] = QUESTIONS[name]()
        return [self.answers[name] for name in names if self.answers[name]]
