"""Root attaches to processes of a user who means no good: nothing of that user is run by it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from flame.attach.library.remote_exec import load
from flame.core.errors import InputError
from inject import build
from tests.attach.conftest import NOBODY, Start, needs_root

pytestmark = needs_root

# Waits, as a program to attach to; started with words it says that it was.
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
int main(int count, char**) {
  if (count > 1) {
    FILE* file = fopen(FOLDER "/was-run", "w");
    const char* secret = getenv("SECRET");
    if (file) fprintf(file, "uid %d, %s\n", getuid(), secret ? secret : "no secret");
    return 1;
  }
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
"""


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A folder of another user that all can read."""
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def python(theirs: Path) -> Path:
    """What that user calls a Python."""
    program = theirs / "python3.14"
    source = theirs / "program.cpp"
    source.write_text(PROGRAM)
    try:
        compiler = build.compiler()
    except build.BuildError as error:
        pytest.skip(str(error))
    folder = f'-DFOLDER="{theirs}"'
    subprocess.run([*compiler, folder, "-o", str(program), str(source)], check=True)
    return program


@pytest.fixture(autouse=True)
def library_and_secret(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAME_LIBRARY", str(library))
    monkeypatch.setenv("SECRET", "of root")


def check_nothing_is_run(process: subprocess.Popen[bytes], theirs: Path) -> None:
    assert process.stdout
    if process.stdout.readline() != b"ready\n":
        pytest.skip("that user cannot have such a program here")
    with pytest.raises(InputError, match=f"^{process.pid}: "):
        load(process.pid)
    ran = theirs / "was-run"
    assert not ran.exists(), ran.read_text()


def test_a_python_that_its_user_has_made(start: Start, python: Path, theirs: Path) -> None:
    process = start(
        str(python), stdout=subprocess.PIPE, user=NOBODY, group=NOBODY, extra_groups=[], env={}
    )
    check_nothing_is_run(process, theirs)


def test_a_python_that_takes_the_place_of_roots(start: Start, python: Path, theirs: Path) -> None:
    """In a namespace of that user's, where it has the path of one that nobody but root can change.

    The path alone would have root run it as root.
    """
    roots = Path(shutil.which("python3", path="/usr/bin") or "").resolve()
    if not roots.is_file():
        pytest.skip("no Python of root's")
    command = f"mount --bind {python} {roots} && exec {roots}"
    process = start(
        *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
    check_nothing_is_run(process, theirs)
