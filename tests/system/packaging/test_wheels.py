"""The wheels of ``make wheels``: what their libraries need, and how they load with an old glibc."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from flame._version import __version__
from tests.inject.conftest import locked
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, meta

pytestmark = pytest.mark.deep

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # as Debian calls them
ELF_NAMES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
INJECT, CORE = "libflameinject.so", "libflamecore.so"
ENTRY_POINTS = {
    *("InitializeInjection", "InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension"),
    "flame_attach",
}
OF_THE_SYSTEM = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-")
NEWEST_GLIBC = (2, 28)
TAG = re.compile(r"py3-none-manylinux_2_([0-9]+)_(x86_64|aarch64)")
# The oldest Debian that is served, with glibc 2.31, and a Python that loads the libraries there.
SUITE, PYTHON = "bullseye", "python3.9"
LOAD = """
import ctypes, platform, sys
ctypes.CDLL(sys.argv[1]).flamecore_order
assert ctypes.CDLL(sys.argv[2]).InitializeInjection() == 1
print(platform.machine(), platform.libc_ver()[1])
"""


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def wheel(machine: str) -> Path:
    found = list((ROOT / "dist").glob(f"flame_view-{__version__}-*manylinux*_{machine}.whl"))
    if not found:
        pytest.skip("make wheels has not been run")
    (path,) = found
    named = TAG.fullmatch(path.stem.split("-", 2)[2])
    assert named and (2, int(named[1])) <= NEWEST_GLIBC and named[2] == machine
    return path


@pytest.fixture
def libraries(wheel: Path, tmp_path: Path) -> dict[str, Path]:
    """The compiled parts of the wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: Path(archive.extract(f"flame/{name}", tmp_path / "wheel"))
            for name in (INJECT, CORE)
        }


def readelf(*words: str | Path) -> str:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    done = subprocess.run(["readelf", "-W", *map(str, words)], capture_output=True, text=True)
    return done.stdout


def test_the_wheel_is_of_this_machine_and_names_its_licences(wheel: Path, machine: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        folder = f"flame_view-{__version__}.dist-info"
        (tag,) = TAG.finditer(archive.read(f"{folder}/WHEEL").decode())
        assert tag[2] == machine and wheel.stem.endswith(tag[0])
        names = set(archive.namelist())
        assert {f"{folder}/licenses/LICENSE", f"{folder}/licenses/NOTICE"} <= names
        assert not {name for name in names if ".libs/" in name}, "auditwheel has nothing to add"


@pytest.mark.parametrize("name", [INJECT, CORE])
def test_a_library_needs_an_old_glibc_and_nothing_else(
    name: str, libraries: dict[str, Path], machine: str
) -> None:
    path = libraries[name]
    assert ELF_NAMES[machine] in readelf("-h", path)
    dynamic = readelf("-d", path)
    needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
    assert needed and all(one.startswith(OF_THE_SYSTEM) for one in needed)
    assert ("NODELETE" in dynamic) == (name == INJECT)
    versions = {
        tuple(map(int, word.removeprefix("GLIBC_").split(".")))
        for word in readelf("-V", path).split()
        if word.startswith("GLIBC_2")
    }
    assert versions and max(versions) <= NEWEST_GLIBC
    rows = [line.split() for line in readelf("--dyn-syms", path).splitlines()]
    exported = {row[7] for row in rows if len(row) == 8 and row[4:6] == ["GLOBAL", "DEFAULT"]}
    defined = exported - {row[7] for row in rows if len(row) >= 8 and row[6] == "UND"}
    if name == INJECT:
        assert defined == ENTRY_POINTS
    else:
        assert defined and all(one.startswith("flamecore_") for one in defined)


def old_system(machine: str) -> Path:
    """A tree with an old C library and a Python; kept in build/, so that it is fetched once."""
    kept = ROOT / "build" / "debian" / f"{SUITE}-{machine}"
    with locked(kept.parent):
        if not (kept / "usr" / "bin" / PYTHON).exists():
            script = ROOT / "tests" / "support" / "debian_tree.sh"
            packages = [f"{PYTHON}-minimal", f"lib{PYTHON}-stdlib"]
            done = subprocess.run(
                ["sh", str(script), str(kept), SUITE, MACHINES[machine], *packages],
                capture_output=True,
                text=True,
                timeout=5 * PATIENCE,
                check=False,
            )
            if done.returncode:
                shutil.rmtree(kept, ignore_errors=True)
                pytest.skip(f"no tree of {SUITE} can be had: {done.stderr.strip()}")
    return kept


def command_in(tree: Path, machine: str) -> list[str]:
    """How a program of the tree is started, with the tree's own C library."""
    if machine == platform.machine():
        (libraries,) = tree.glob("lib/*-linux-gnu")
        (loader,) = libraries.glob("ld-linux-*")
        return [str(loader), "--library-path", f"{libraries}:{tree}/usr/lib/{libraries.name}"]
    for name in (f"qemu-{machine}", f"qemu-{machine}-static"):
        if emulator := shutil.which(name):
            return [emulator, "-L", str(tree)]
    pytest.skip(f"programs for {machine} run here only under qemu-{machine}")


def test_the_libraries_load_where_glibc_is_old(
    libraries: dict[str, Path], machine: str, tmp_path: Path
) -> None:
    tree = old_system(machine)
    words = [*command_in(tree, machine), str(tree / "usr" / "bin" / PYTHON), "-c", LOAD]
    done = subprocess.run(
        [*words, str(libraries[CORE]), str(libraries[INJECT])],
        env={"PYTHONHOME": str(tree / "usr"), "FLAME_DIR": str(tmp_path / "dumps")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [machine, "2.31"]
    (dump,) = (tmp_path / "dumps").glob("*.fdump")
    assert header(dump)["state"] == 1
    assert meta(dump)["library"] == [__version__]
