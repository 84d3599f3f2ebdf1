"""The library, its test double and C++ test programs, built once for all tests and processes.

What is built lies in build/native/, in a folder named by the hash of everything it is made of.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from inject import build
from tests.support.garbage import leaks_told as leaks_told

ROOT = Path(__file__).resolve().parents[2]
NATIVE = Path(__file__).with_name("native")
BUILT = ROOT / "build" / "native"

# By either of these names the double is found: the driver's, and CUPTI's.
FAKE_NAMES = ("libcuda.so.1", "libcupti.so.13")
HIDDEN = "-fvisibility=hidden"
SHARED = ("-shared", HIDDEN)
# Not where users build: another compiler has other warnings.
STRICT = "-Werror"
# -O0 halves the time that the address sanitizer takes to compile; the other gains nothing by it.
SANITIZERS = {
    "thread": ("-O1", "-fsanitize=thread"),
    "address": ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
}
# The last flush is not given up, however little of a machine a sanitizer's build gets.
PATIENT = "-DFLAME_PATIENCE_MS=600000"
WATCHED = ("-g1", "-fno-omit-frame-pointer")  # reports have lines; with -g it takes longer again
# Of the tester's own shell; a test says itself what the library and its double are told.
OURS = ("FLAME_", "FAKE_", "CUDA_INJECTION", "NVTX_INJECTION")


@contextmanager
def small_file_system(place: Path, mebibytes: int) -> Iterator[Path]:
    """An empty one of this size at ``place``; only root can have it."""
    place.mkdir()
    options = f"size={mebibytes}m,mode=700"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("a file system can only be mounted by root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@dataclass(frozen=True)
class Built:
    """A library, and the folder with the double as libcuda.so.1 and libcupti.so.13."""

    library: Path
    fake: Path
    flags: tuple[str, ...] = ()
    """What a program must be compiled with to load them."""


@pytest.fixture(scope="session")
def buildable() -> None:
    """Skips where the library cannot be built, and says why."""
    if not build.supported():
        pytest.skip("the injection library is for Linux with glibc")
    try:
        build.compiler()
        build.includes()
    except build.BuildError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def library(buildable: None) -> Path:
    """The injection library as it is shipped."""
    return built("libflameinject.so", build.sources(), "-shared", *build.RELEASE)


@pytest.fixture(scope="session")
def patient_library(buildable: None) -> Path:
    """The library, which waits for longer than a test does where it waits in vain."""
    return built("libflameinject.so", build.sources(), "-shared", *build.RELEASE, PATIENT)


@pytest.fixture(scope="session")
def fake(buildable: None) -> Path:
    """Folder with the test double of libcuda and libcupti, for LD_LIBRARY_PATH."""
    return fake_in("-O2")


@pytest.fixture(scope="session")
def sanitized(buildable: None) -> Callable[[str], Built]:
    """Library and double with a sanitizer: ``thread``, or ``address`` (and undefined behaviour)."""

    def make(kind: str) -> Built:
        flags = (*WATCHED, *SANITIZERS[kind])
        library = built("libflameinject.so", build.sources(), *SHARED, *flags, PATIENT)
        return Built(library, fake_in(*flags), flags)

    return make


@pytest.fixture(scope="session")
def compiled(buildable: None) -> Callable[..., Path]:
    """Compiles ``tests/inject/native/NAME`` with further flags or files, to a program."""

    def make(name: str, *flags: str) -> Path:
        files = [Path(flag) for flag in flags if flag.endswith(".cpp")]
        flags = tuple(flag for flag in flags if not flag.endswith(".cpp"))
        return built(Path(name).stem, [NATIVE / name, *files], *flags)

    return make


@pytest.fixture(scope="session")
def probe(compiled: Callable[..., Path]) -> Path:
    """The library with functions for ctypes."""
    # Its functions for ctypes are seen from outside, unlike all else in a library that is shipped.
    flags = [flag for flag in build.RELEASE if "--version-script" not in flag]
    return compiled(
        "python_probe.cpp",
        "-shared",
        *flags,
        *map(str, [NATIVE / "interrupted.cpp", *build.sources()]),
    )


@pytest.fixture(scope="session")
def injected_env(request: pytest.FixtureRequest) -> Callable[..., dict[str, str]]:
    """Makes the environment of a process that is recorded into ``folder``.

    With ``fake`` it finds the double as its driver. ``more`` are further variables, or the
    ``library`` and ``fake`` of another build, as paths.
    """

    def make(folder: Path, fake: bool | Path = True, **more: str | Path) -> dict[str, str]:
        library = more.pop("library", None) or request.getfixturevalue("library")
        env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        env |= {"CUDA_INJECTION64_PATH": str(library), "NVTX_INJECTION64_PATH": str(library)}
        env |= {"FLAME_DIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        if fake:
            double = fake if isinstance(fake, Path) else request.getfixturevalue("fake")
            env["LD_LIBRARY_PATH"] = os.pathsep.join(
                filter(None, [str(double), env.get("LD_LIBRARY_PATH")])
            )
        return Environment(env | {name: str(value) for name, value in more.items()})

    return make


class Environment(dict[str, str]):
    """Variables of a process, which a failing test does not print: others may read that."""

    def __repr__(self) -> str:
        return f"<{len(self)} variables>"


def fake_in(*flags: str) -> Path:
    """The double, linked under the names of what it stands for."""
    sources = sorted(build.DOUBLE.glob("*.cpp"))
    first = built("libfakecuda.so", sources, *SHARED, *flags)
    with locked(first.parent):
        for link in map(first.with_name, FAKE_NAMES):
            if not link.is_symlink():
                link.symlink_to(first.name)
    return first.parent


def built(name: str, sources: list[Path], *flags: str) -> Path:
    """Compiles ``sources`` unless that has been done by another test or process before."""
    command = [name, *build.compiler(), build.version(), *map(str, sources), STRICT, *flags]
    folder = BUILT / build.digest([*sources, Path(build.__file__)], command)
    target = folder / name
    with locked(folder):
        if not target.exists():
            try:
                build.compile_to(target, sources, STRICT, *flags, objects=build.OBJECTS)
            except build.BuildError as error:
                pytest.fail(str(error), pytrace=False)
    return target


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder against other processes; the lock goes with the process that has it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
