"""The built distributions hold the package whole, install, and run; the papers match the code."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest
from pathspec import GitIgnoreSpec

from flame._version import __version__
from inject import build as inject
from tests.support.paths import ROOT, SAMPLES
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.deep

SAMPLE = SAMPLES / "decode_small.sqlite"
# What pip says of a project when no index answers; a wrong version bound would list the versions.
OFFLINE = "(from versions: none)"


LIBRARY = "flame/libflameinject.so"
CORE_LIBRARY = "flame/libflamecore.so"
COMMON = f"flame_view-{__version__}-py3-none-"


def run(
    *command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None, umask: int = -1
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "", **(env or {})},
        umask=umask,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
        check=False,
    )


def succeed(*command: str | Path, cwd: Path = ROOT) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_in(folder: str) -> set[str]:
    """Files of the folder that belong to the sources."""
    ignored = GitIgnoreSpec.from_lines((ROOT / ".gitignore").read_text().splitlines())
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    names = {path.relative_to(ROOT).as_posix() for path in paths}
    return {name for name in names if not ignored.match_file(name)}


def digests(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def below(folder: str, names: set[str]) -> set[str]:
    return {name for name in names if PurePosixPath(name).parts[0] == folder}


def can_build() -> bool:
    """Whether the library can be built here and now, as tests do: without a network."""
    try:
        inject.includes()
    except inject.BuildError:
        return False
    return inject.possible()


needs_library = pytest.mark.skipif(not can_build(), reason="the library cannot be built here")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist, and the wheel that was built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    succeed(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def wheel_with(folder: Path, **env: str) -> tuple[Path, str]:
    """The only wheel that is built with these variables, and what was said."""
    build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, ROOT)
    done = run(*build, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = folder.glob("*.whl")
    return found, done.stdout + done.stderr


@pytest.fixture(scope="module")
def sdist_names(dist: Path) -> set[str]:
    """Files of the sdist, without its leading folder."""
    with tarfile.open(dist / f"flame_view-{__version__}.tar.gz") as archive:
        files = [member.name for member in archive.getmembers() if member.isfile()]
    return {name.partition("/")[2] for name in files}


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new environment that holds the wheel and what the wheel asks for.

    Without a network the dependencies are lent by the environment the tests run in.
    """
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install", "-q"]
    done = run(*pip, "--retries", "0", "--timeout", "15", wheel)
    if done.returncode and OFFLINE in done.stderr:
        done = run(*pip, "--no-deps", "--no-index", wheel)
        lent = sysconfig.get_path("purelib")
        site = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        (site / "lent.pth").write_text(f"{lent}\n")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


def test_wheel_holds_the_package_its_manual_pages_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert below("flame", names) - {LIBRARY, CORE_LIBRARY} == files_in("flame")
    metadata, data = (f"flame_view-{__version__}.{kind}" for kind in ("dist-info", "data"))
    pages = {f"{data}/data/share/man/man1/{path.name}" for path in (ROOT / "docs/man").iterdir()}
    assert len(pages) > 10
    assert names == below("flame", names) | below(metadata, names) | pages
    assert "flame/py.typed" in names


@needs_library
def test_wheel_of_this_machine_holds_the_library(wheel: Path) -> None:
    assert wheel.name == f"{COMMON}linux_{platform.machine()}.whl"
    archive = zipfile.ZipFile(wheel)
    assert archive.read(LIBRARY).startswith(b"\x7fELF")
    assert archive.read(CORE_LIBRARY).startswith(b"\x7fELF")
    metadata = archive.read(f"flame_view-{__version__}.dist-info/WHEEL").decode()
    assert "Root-Is-Purelib: false" in metadata


@needs_library
def test_installed_flame_uses_its_compiled_part(installed: Path, tmp_path: Path) -> None:
    code = "from flame.core.compiled.library import compiled; print(compiled())"
    (library,) = (installed.parent / "lib").rglob(Path(CORE_LIBRARY).name)
    assert f"'{library}'" in succeed(installed / "python", "-c", code, cwd=tmp_path)


@needs_library
def test_installed_flame_finds_its_library(installed: Path, tmp_path: Path) -> None:
    found = run(installed / "flame", "doctor", cwd=tmp_path).stdout
    (library,) = (installed.parent / "lib").rglob(Path(LIBRARY).name)
    assert f"{__version__}, {library}" in found


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no library to leave out")
@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"CXX": "/nonexistent/c++"}, "no C++ compiler: /nonexistent/c++ not found"),
        ({"FLAME_CUDA_INCLUDE": "/nonexistent"}, "FLAME_CUDA_INCLUDE has no cuda.h, cupti.h"),
    ],
)
def test_wheel_is_a_viewer_where_the_library_cannot_be_built(
    env: dict[str, str], said: str, tmp_path: Path
) -> None:
    wheel, output = wheel_with(tmp_path, FLAME_NO_NATIVE="1", **env)
    assert wheel.name == f"{COMMON}any.whl"
    assert LIBRARY not in zipfile.ZipFile(wheel).namelist()
    assert "not be able to record" in output and said in output


def test_wheel_is_python_alone_where_that_is_wanted(tmp_path: Path) -> None:
    wheel, output = wheel_with(tmp_path, FLAME_NO_INJECT="1", FLAME_NO_NATIVE="1")
    assert wheel.name == f"{COMMON}any.whl" and "flame will" not in output


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no library to leave out")
def test_wheel_reads_by_numpy_where_there_is_no_c_compiler(tmp_path: Path) -> None:
    wheel, output = wheel_with(tmp_path, FLAME_NO_INJECT="1", CC="/nonexistent/cc")
    assert wheel.name == f"{COMMON}any.whl"
    assert "by numpy alone: no C compiler: /nonexistent/cc not found" in output


def test_the_same_sources_give_the_same_bytes_wherever_they_are_built(
    dist: Path, tmp_path: Path
) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    succeed(sys.executable, "-m", "tarfile", "-e", sdist, tmp_path)
    elsewhere, again = tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "again"
    other = {"TZ": "Asia/Kolkata", "LC_ALL": "C", "PYTHONHASHSEED": "7", "HOME": str(tmp_path)}
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", again, elsewhere)
    done = run(*build, cwd=tmp_path, env=other, umask=0o077)
    assert done.returncode == 0, done.stdout + done.stderr
    assert digests(again) == digests(dist)


@pytest.mark.parametrize(
    "folder", ["flame", "docs", "csrc", "inject", "release", "samples", "tests", "benchmarks"]
)
def test_sdist_holds_the_folder_whole(folder: str, sdist_names: set[str]) -> None:
    assert below(folder, sdist_names) == files_in(folder)


def test_sdist_can_be_checked_like_a_checkout(sdist_names: set[str]) -> None:
    papers = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE"}
    scripts = {"Makefile", "pyproject.toml", "hatch_build.py", ".ci/run"}
    assert papers | scripts <= sdist_names


def test_sdist_does_not_hold_the_links(sdist_names: set[str]) -> None:
    assert not {PurePosixPath(name).parts[0] for name in sdist_names} & {"core", "tui", "exporters"}


def test_installed_command_knows_its_version(installed: Path, tmp_path: Path) -> None:
    assert __version__ in succeed(installed / "flame", "--version", cwd=tmp_path)


def test_installed_package_is_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import flame; print(flame.__file__)"
    location = Path(succeed(installed / "python", "-c", code, cwd=tmp_path).strip())
    assert location.is_relative_to(installed.parent)


@pytest.mark.parametrize(
    "command", [("info",), ("view", "--print"), ("export", "-f", "folded", "-o", "-")]
)
def test_installed_command_reads_the_sample(
    command: tuple[str, ...], installed: Path, tmp_path: Path
) -> None:
    assert succeed(installed / "flame", *command, SAMPLE, cwd=tmp_path)


def test_changelog_has_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\]", changelog, re.MULTILINE)
