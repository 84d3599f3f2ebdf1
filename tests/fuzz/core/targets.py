"""The fuzz targets of the compiled part: what they are made of, and how they are built.

Each is a file here with a ``LLVMFuzzerTestOneInput``, linked with all of ``csrc/``. clang's
libFuzzer drives it, or, where there is only gcc, ``native/replay.cpp``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from csrc import build

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "corpus"
DRIVER = HERE.parent / "native" / "replay.cpp"

COMPILER = "clang++"
WATCHED = ("-O1", "-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")
SANITIZED = ("-fsanitize=address,undefined", *WATCHED)
FUZZED = ("-fsanitize=fuzzer,address,undefined", *WATCHED)


@dataclass(frozen=True)
class Target:
    """One fuzz target, made of a file ``source`` here."""

    source: str

    @property
    def name(self) -> str:
        """What it is called beside the targets in Python."""
        return f"core_{Path(self.source).stem}"

    @property
    def corpus(self) -> Path:
        """The folder of its inputs that are kept."""
        return CORPUS / self.name

    def build(self, folder: Path, *flags: str) -> Path:
        """Build the libFuzzer binary in ``folder``, with further ``flags`` of the compiler.

        Raises ``RuntimeError`` where a tool is missing, ``BuildError`` where it does not compile.
        """
        if reason := lacking():
            raise RuntimeError(reason)
        clang, flags = compiler(), (*FUZZED, *flags)
        with TemporaryDirectory(dir=folder) as scratch:
            sources = [HERE / self.source, *build.sources()]
            _compile([*clang, "-x", "c"], sources, flags, Path(scratch))
            return _link([*clang, *flags], [Path(scratch)], folder / self.name)

    def build_replayer(self, folder: Path, core: Path) -> Path:
        """Build the target with the driver that needs no fuzzer, and `replayer_core`."""
        linker = [*shlex.split(os.environ.get("CXX") or "g++"), "-x", "c++", str(DRIVER)]
        command = [*linker, "-x", "none", *SANITIZED]
        with TemporaryDirectory(dir=folder) as scratch:
            _compile(build.compiler(), [HERE / self.source], SANITIZED, Path(scratch))
            return _link(command, [core, Path(scratch)], folder / self.name)


def replayer_core(folder: Path) -> Path:
    """Compile all of ``csrc/`` into ``folder``, for all replayers; returns the folder."""
    _compile(build.compiler(), build.sources(), SANITIZED, folder)
    return folder


def _compile(
    command: Sequence[str], sources: Sequence[Path], flags: Sequence[str], folder: Path
) -> None:
    include = f"-I{build.HERE}"
    words = [*command, *build.LANGUAGE, "-Werror", *flags, include, "-c", *map(str, sources)]
    _run(words, folder)


def _link(command: Sequence[str], folders: Sequence[Path], target: Path) -> Path:
    """Link the objects in ``folders``; returns ``target``, which is complete."""
    objects = sorted(str(file) for folder in folders for file in folder.glob("*.o"))
    _run([*command, *objects, "-o", target.name], folders[-1])
    return (folders[-1] / target.name).replace(target)


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise build.BuildError(f"{command[0]} failed:\n{done.stderr}{shlex.join(command)}")


def compiler() -> list[str]:
    """The command of clang: that of FUZZ_CXX, else clang++."""
    return shlex.split(os.environ.get("FUZZ_CXX") or COMPILER)


def lacking() -> str | None:
    """What is missing to build for libFuzzer; None where nothing is."""
    command = compiler()
    if not command or shutil.which(command[0]) is None:
        return f"no {' '.join(command)} (on Debian: apt install clang libclang-rt-14-dev)"
    code = b'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }'
    trial = [*command, FUZZED[0], "-x", "c++", "-", "-o", os.devnull]
    if subprocess.run(trial, input=code, capture_output=True, check=False).returncode:
        return f"{command[0]} has no libFuzzer (on Debian: apt install libclang-rt-14-dev)"
    return None


TARGETS = tuple(Target(f"{name}.c") for name in ("pages", "tables", "open_at", "pieces", "shares"))
