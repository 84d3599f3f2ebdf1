"""Root attaches to processes of a user who means no good: nothing of that user is run by it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flame.attach.library import remote_script
from flame.attach.library.process_memory import ProcessMemory
from flame.attach.library.remote_exec import load
from flame.attach.library.remote_script import RemoteScript
from flame.core.errors import InputError
from inject import build
from tests.attach.conftest import NOBODY, Start, as_nobody, needs_root, wait_until

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


RANGES = """
import nvtx, time
with nvtx.annotate("secret"):
    while True: time.sleep(0.01)
"""


def test_another_user_gets_at_nothing_of_a_recording(
    start: Start, injected_env: Callable[..., dict[str, str]], theirs: Path
) -> None:
    os.chown(theirs, 0, 0)  # All may look into it: what is in there has to protect itself.
    process = start(sys.executable, "-c", RANGES, env=injected_env(theirs, fake=False))
    wait_until(lambda: list(theirs.glob("*.sock")) and list(theirs.glob("*.fdump")))
    (dump,) = theirs.glob("*.fdump")
    attempts: dict[str, Callable[[], object]] = {
        "read": dump.read_bytes,
        "write": lambda: dump.open("r+b"),
        "replace": lambda: (theirs / "new").write_bytes(b""),
        "rename": lambda: dump.rename(theirs / "other"),
        "remove": dump.unlink,
        "descriptor": lambda: Path(f"/proc/{process.pid}/fd").iterdir().__next__(),
        "mappings": lambda: Path(f"/proc/{process.pid}/maps").read_bytes(),
        "memory": lambda: ProcessMemory(process.pid),
        "attach": lambda: load(process.pid),
        "socket": lambda: connected(dump.with_suffix(".sock")),
    }
    assert as_nobody(lambda: " ".join(filter(None, map(succeeds, attempts.items())))) == ""


def succeeds(attempt: tuple[str, Callable[[], object]]) -> str:
    name, act = attempt
    try:
        act()
    except (PermissionError, InputError):
        return ""
    return name


def connected(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))


def test_what_a_user_answers_is_no_more_than_a_text(theirs: Path) -> None:
    with RemoteScript((NOBODY, NOBODY)) as script:
        script.prepare("")

        def answer() -> str:
            (script.place / "said").write_bytes(b"\x1b]0;title\x07" + b"x" * (1 << 20))
            return "done"

        assert as_nobody(answer) == "done"
        said = script.wait(5, lambda: True)
    assert said and said.startswith("\x1b]0;title") and len(said) < 5000
    assert not script.place.exists()


def test_what_a_user_puts_into_the_place_of_a_script_stays(
    theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the script is that user's, who may rename it."""
    os.chown(theirs, 0, 0)
    theirs.chmod(0o1777)
    monkeypatch.setattr(remote_script, "ROOM", theirs)
    other = theirs / "other"
    other.mkdir()
    (other / "load.py").write_text("of somebody")
    with RemoteScript((NOBODY, NOBODY)) as script:
        script.prepare("")

        def swap() -> str:
            script.place.rename(theirs / "moved")
            script.place.symlink_to(other)
            return "done"

        assert as_nobody(swap) == "done"
    assert (other / "load.py").read_text() == "of somebody"
    assert list((theirs / "moved").iterdir()) == []
