"""The fuzz targets of the injection library: what they are made of, and how they are built.

Each is a file here with a ``LLVMFuzzerTestOneInput``, linked with the parts of the library that it
is about. clang's libFuzzer drives it, or, where there is only gcc, ``replay.cpp``.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from os import environ
from pathlib import Path

from inject import build

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "corpus"

COMPILER = "clang++"
WATCHED = ("-O1", "-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")
FUZZED = ("-fsanitize=fuzzer,address,undefined", *WATCHED)

# Folders of the library, by what a target needs of it.
DUMP = ("dump/*.cpp", "process/*.cpp", "system/*.cpp")
NVTX = ("nvtx/*.cpp", "nvtx/shared/*.cpp", "nvtx/payload/*.cpp", "system/*.cpp")
CUPTI = (
    *("cupti/*.cpp", "cupti/api/activity_calls.cpp", "cupti/takeover/*.cpp", "sampling/*.cpp"),
    *("system/*.cpp", "dump/folder.cpp"),
)
PYTHON = ("python/*.cpp", "system/*.cpp")

RECORDER = "recorder.cpp"
DISK = "disk.cpp"
FORGET_NAMES, FORGET_SCHEMAS = "forget_names.cpp", "forget_schemas.cpp"
OPTIONS = "options.cpp"
DRIVER = "replay.cpp"


@dataclass(frozen=True)
class Target:
    """One fuzz target, made of a file ``source`` here.

    ``parts`` are patterns of files below ``inject/``, ``included`` those of them that files here
    have in themselves, ``beside`` the other files of this folder.
    """

    source: str
    parts: tuple[str, ...]
    included: tuple[str, ...] = ()
    beside: tuple[str, ...] = (RECORDER,)

    @property
    def name(self) -> str:
        """What it is called beside the targets in Python."""
        return f"native_{Path(self.source).stem}"

    @property
    def corpus(self) -> Path:
        """The folder of its inputs that are kept."""
        return CORPUS / self.name

    @property
    def aimed_at(self) -> list[Path]:
        """The files of the library that it is made of."""
        return sorted({file for part in self.parts for file in build.HERE.glob(part)})

    @property
    def sources(self) -> list[Path]:
        """All files to be compiled, without a driver."""
        inside = {build.HERE / file for file in self.included}
        own = [HERE / file for file in (self.source, OPTIONS, *self.beside)]
        return [*own, *(file for file in self.aimed_at if file not in inside)]

    def build(self, folder: Path, *flags: str) -> Path:
        """Build the libFuzzer binary in ``folder``, with further ``flags`` of the compiler.

        Raises ``RuntimeError`` where a tool is missing, ``BuildError`` where it does not compile.
        """
        if reason := lacking():
            raise RuntimeError(reason)
        binary = folder / self.name
        flags = (*FUZZED, *flags)
        build.compile_to(binary, self.sources, *flags, objects=build.OBJECTS, using=compiler())
        return binary


def compiler() -> list[str]:
    """The command of clang: that of FUZZ_CXX, else clang++."""
    return shlex.split(environ.get("FUZZ_CXX") or COMPILER)


def lacking() -> str | None:
    """What is missing to build for libFuzzer; None where nothing is."""
    if not build.supported():
        return "the injection library is for Linux with glibc"
    command = compiler()
    if not command or shutil.which(command[0]) is None:
        return f"no {' '.join(command)} (on Debian: apt install clang libclang-rt-14-dev)"
    if not _links(command):
        return f"{command[0]} has no libFuzzer (on Debian: apt install libclang-rt-14-dev)"
    return None


def _links(command: Sequence[str]) -> bool:
    """Whether the compiler has the runtime of the fuzzer and the sanitizers."""
    code = b'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }'
    command = [*command, FUZZED[0], "-x", "c++", "-", "-o", "/dev/null"]
    return subprocess.run(command, input=code, capture_output=True, check=False).returncode == 0


TARGETS = (
    Target("control_protocol.cpp", DUMP, beside=(DISK,)),
    Target("control_socket.cpp", DUMP, beside=(DISK,)),
    Target("dump_names.cpp", (*DUMP, "cupti/kernel_names.cpp"), beside=(DISK,)),
    Target("cupti.cpp", CUPTI, ("cupti/subscribe.cpp", "sampling/sampling.cpp")),
    Target("python_walk.cpp", PYTHON),
    Target("settings.cpp", ("system/*.cpp",), ("system/settings.cpp",), ()),
    Target("nvtx_payload.cpp", NVTX, ("nvtx/payload/schema.cpp",), (RECORDER, FORGET_SCHEMAS)),
    Target(
        "nvtx_calls.cpp",
        NVTX,
        ("nvtx/payload/schema.cpp", "nvtx/shared/names.cpp"),
        (RECORDER, FORGET_NAMES, FORGET_SCHEMAS),
    ),
)
