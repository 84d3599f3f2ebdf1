"""Run NVIDIA's disassembler nvdisasm, where the user has it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from flame.core.errors import InputError
from flame.core.external import (
    ResourceLimits,
    find_program,
    find_reason,
    package_folders,
    read_head,
    run_limited,
)
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.pc_samples import Code
from flame.core.sass.cubin import CubinFunction, Tick
from flame.core.sass.nvdisasm_output import CodeSection, parse_sections

PATH_VARIABLE = "FLAME_NVDISASM"
ADVICE = "nvdisasm is not here: pip install nvidia-cuda-nvdisasm"

_WHEEL = "nvidia/*/bin/nvdisasm"
_TOOLKIT = "cuda*/bin/nvdisasm"
_VERSION = lazy_regex(r"\bV(\d+(?:\.\d+)*)")
_TIMEOUT = 120.0
"""Seconds for one cubin; those of large libraries take a few."""
_VERSION_TIMEOUT = 10.0
_MOST_AT_ONCE = 4096
"""Functions: their numbers are one word of a command line."""
_LARGEST_OUTPUT = 1 << 29
_MOST_MEMORY = 1 << 34
_MOST_CPU = 600
"""Seconds, of all its threads."""
_END = 1 << 62


@dataclass(frozen=True)
class Disassembler:
    """The nvdisasm at ``path``."""

    path: str
    version: str

    def disassemble(
        self,
        cubin: BinaryIO,
        functions: Mapping[str, CubinFunction],
        tick: Tick,
        uid: int | None = None,
    ) -> dict[str, Code]:
        """Disassemble some ``functions`` of a cubin; those that it does not print are left out.

        It gets the open file: whoever owns the folder could put another in the place of its name.
        ``uid``: the user that it is run as. Raises InputError that says why there are none.
        """
        run = partial(self._sections, cubin, uid, tick)
        due = time.monotonic() + _TIMEOUT
        codes: dict[str, Code] = {}
        for batch in _batches(functions):
            sections = run(batch.values(), due)
            for name, function in batch.items():
                section = sections.get(function.section, CodeSection())
                if section.in_doubt:
                    section = run([function], due).get(function.section, section)
                if section.rows:
                    end = function.start + function.size if function.start else _END
                    codes[name] = section.function_code(name, function.start, end)
        return codes

    def _sections(
        self,
        cubin: BinaryIO,
        uid: int | None,
        tick: Tick,
        functions: Iterable[CubinFunction],
        due: float,
    ) -> dict[str, CodeSection]:
        numbers = ",".join(str(function.symbol) for function in functions)
        command = [self.path, "-c", "-g", "-fun", numbers, f"/dev/fd/{cubin.fileno()}"]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as stderr:
            code = _run(command, out, stderr, tick, due, uid, (cubin.fileno(),))
            if code:
                raise InputError(_describe_failure(code, stderr))
            out.seek(0)
            return parse_sections(line.decode("utf-8", "replace").rstrip("\n") for line in out)


def _batches(functions: Mapping[str, CubinFunction]) -> Iterator[dict[str, CubinFunction]]:
    rest = iter(functions.items())
    while batch := dict(islice(rest, _MOST_AT_ONCE)):
        yield batch


def _run(
    command: list[str],
    out: BinaryIO,
    stderr: BinaryIO,
    tick: Tick,
    due: float,
    uid: int | None = None,
    passed: tuple[int, ...] = (),
) -> int:
    """Run a command, return its exit code; InputError where it takes or prints too much."""

    def look() -> None:
        tick()
        if time.monotonic() > due:
            raise InputError(f"nvdisasm does not end within {_TIMEOUT:.0f} s")
        _check_size(out)

    limits = ResourceLimits(2 * _LARGEST_OUTPUT, _MOST_MEMORY, _MOST_CPU)
    code = run_limited(command, out, stderr, limits, look, uid, passed)
    # Its own limit may have ended it between two looks.
    _check_size(out)
    return code


def _check_size(out: BinaryIO) -> None:
    if os.fstat(out.fileno()).st_size > _LARGEST_OUTPUT:
        raise InputError("nvdisasm prints without end")


def _describe_failure(code: int, stderr: BinaryIO) -> str:
    reason = find_reason(read_head(stderr))
    return f"nvdisasm failed ({reason or f'exit {code}'})"


def find_disassembler() -> Disassembler | None:
    """Find the first nvdisasm that runs: FLAME_NVDISASM, on PATH, of a wheel, of a toolkit.

    Where FLAME_NVDISASM names one, no other is taken. It is told apart by its version.
    """
    for path in _candidates():
        if version := _read_version(path):
            return Disassembler(path, version)
    return None


def _candidates() -> Iterator[str]:
    if named := os.environ.get(PATH_VARIABLE):
        if found := named if "/" in named else find_program(named):
            yield str(Path(found).absolute())
        return
    if on_path := find_program("nvdisasm"):
        yield on_path
    for folder in package_folders():
        yield from map(str, sorted(folder.glob(_WHEEL), reverse=True))
    yield from map(str, sorted(Path("/usr/local").glob(_TOOLKIT), reverse=True))


def _read_version(path: str) -> str:
    """Ask the program for its version, whatever it is; empty where it says none."""
    due = time.monotonic() + _VERSION_TIMEOUT
    try:
        with tempfile.TemporaryFile() as out:
            _run([path, "--version"], out, out, _never_stop, due)
            version = _VERSION.search(read_head(out))
    except (OSError, ValueError, InputError):
        return ""
    return version[1] if version else ""


def _never_stop() -> None:
    """Do nothing: the version is only limited by its due time."""
