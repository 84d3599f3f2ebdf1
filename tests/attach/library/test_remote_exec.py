"""The library is loaded into programs that run already: real CPythons 3.14 where there are any.

``FLAME_PYTHON314`` and ``FLAME_PYTHON315`` name them, else they are looked for on PATH;
``tests/attach/python314.sh`` makes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import flame
from flame.attach.library.control import Control
from flame.attach.library.remote_exec import load
from flame.attach.library.remote_script import ROOM, RemoteScript
from flame.core.errors import InputError
from flame.core.loading.many import load as load_trace
from tests.attach.conftest import NOBODY, Start, needs_root, wait_until
from tests.cli.programs import KERNELS
from tests.support.profiles.project_tree import project_tree
from tests.support.waiting import PATIENCE

INJECTED = Path(load.__code__.co_filename).with_name("injected.py")
ME = (os.getuid(), os.getgid())
READY = 'print("ready", flush=True)\n'
WAITING = f"import time\n{READY}while True: time.sleep(0.005)\n"
STUCK = f"import os\n{READY}os.read(0, 1)\n" + WAITING
LAUNCHING = (
    f"{KERNELS}\n{READY}"
    "def forward():\n"
    "    launch(gemm)\n"
    "    time.sleep(0.002)\n"
    "while True: forward()\n"
)

Running = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="session")
def python314() -> str:
    """A CPython that others can load something into."""
    return loadable_python("3.14")


def loadable_python(version: str) -> str:
    variable = f"FLAME_PYTHON{version.replace('.', '')}"
    found = os.environ.get(variable) or shutil.which(f"python{version}")
    if not found:
        pytest.skip(f"no CPython {version}: {variable} can name one")
    code = "import sys; sys.exit(not sys.is_remote_debug_enabled())"
    if subprocess.run([found, "-I", "-c", code], check=False).returncode:
        pytest.skip(f"{found} cannot be loaded into")
    return found


@pytest.fixture
def running(start: Start, fake: Path) -> Running:
    """Starts a Python program; returns when it has said that it is ready."""

    def begin(*words: str, **options: object) -> subprocess.Popen[bytes]:
        env = os.environ | {"LD_LIBRARY_PATH": str(fake), **options.pop("env", {})}  # type: ignore[dict-item]
        process = start(*words, stdout=subprocess.PIPE, env=env, **options)
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        return process

    return begin


@pytest.fixture(autouse=True)
def named_library(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library that is tested is the one of the other tests."""
    monkeypatch.setenv("FLAME_LIBRARY", str(library))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = left_behind()
    yield
    assert left_behind() == before


def left_behind() -> set[str]:
    return {path.name for path in ROOM.glob("flame-attach-*")}


def why_not(pid: int, folder: Path | None = None, patience: float = 5) -> str:
    with pytest.raises(InputError) as caught:
        load(pid, folder, patience)
    assert str(caught.value).startswith(f"{pid}: ")
    return str(caught.value)


def test_kernels_are_recorded_from_then_on_with_their_python_frames(
    python314: str, running: Running, tmp_path: Path
) -> None:
    process = running(python314, "-c", LAUNCHING)
    dump = load(process.pid, tmp_path)
    assert dump.parent == tmp_path
    wait_until(lambda: dump.stat().st_size > 0 and launches(dump) > 50)
    process.terminate()
    process.wait()
    profile = load_trace(dump)
    tree = project_tree(profile, "python,launch,kernel")
    paths = {tuple(profile.frames[frame].name for frame in path) for path in leaves(tree)}
    assert paths == {("<module>", "forward", "launch", "call", "cuLaunchKernel", "gemm")}
    assert profile.gpu_time == profile.counts["kernel"] * 100_000


def launches(dump: Path) -> int:
    return load_trace(dump).counts["kernel"]


def leaves(tree: flame.StackTree) -> Iterator[list[int]]:
    """The frames from below the root to every node that has none below it."""
    for node in range(len(tree)):
        if tree.end[node] == node + 1:
            path = []
            while node:
                path.append(int(tree.frame[node]))
                node = int(tree.parent[node])
            yield path[::-1]


@pytest.mark.parametrize("version", ["3.14", "3.15"])
def test_kernels_are_recorded_in_every_version(
    version: str, running: Running, tmp_path: Path
) -> None:
    process = running(loadable_python(version), "-c", LAUNCHING)
    dump = load(process.pid, tmp_path)
    wait_until(lambda: dump.stat().st_size > 0 and launches(dump) > 50)
    assert process.poll() is None


def test_a_program_with_another_interpreter_in_it(
    python314: str, running: Running, tmp_path: Path
) -> None:
    code = f"import _interpreters\n_interpreters.create()\n{WAITING}"
    process = running(python314, "-c", code)
    assert load(process.pid, tmp_path).parent == tmp_path


def test_loading_again_gives_the_same_dump(
    python314: str, running: Running, tmp_path: Path
) -> None:
    process = running(python314, "-c", WAITING)
    assert load(process.pid, tmp_path) == load(process.pid, tmp_path)
    assert len(list(tmp_path.glob("*.fdump"))) == 1


def test_the_program_goes_on_as_if_nothing_had_been(
    python314: str, running: Running, tmp_path: Path
) -> None:
    code = (
        f"import os, sys, time\n{READY}"
        "before = set(globals())\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.005)\n"
        "print(sorted(set(globals()) - before - {'before'}))"
    )
    told = tmp_path / "told"
    words = (python314, "-X", "dev", "-c", code, str(told))
    process = running(*words, stderr=subprocess.PIPE)
    load(process.pid, tmp_path)
    told.touch()
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, b"[]\n", b"")


@pytest.mark.parametrize(
    ("options", "env"),
    [(["-X", "disable-remote-debug"], {}), ([], {"PYTHON_DISABLE_REMOTE_DEBUG": "1"})],
)
def test_a_python_that_lets_nobody(
    python314: str, running: Running, tmp_path: Path, options: list[str], env: dict[str, str]
) -> None:
    process = running(python314, *options, "-c", WAITING, env=env)
    assert "disable-remote-debug" in why_not(process.pid, tmp_path)


def test_a_program_that_waits_in_c_is_recorded_when_it_goes_on(
    python314: str, running: Running, tmp_path: Path
) -> None:
    before = left_behind()
    process = running(python314, "-c", STUCK, stdin=subprocess.PIPE)
    # It returns while the program still waits.
    assert "as soon as that returns" in why_not(process.pid, tmp_path, 0.3)
    assert not list(tmp_path.glob("*.fdump"))
    assert process.stdin
    process.stdin.write(b"x")
    process.stdin.flush()
    wait_until(lambda: list(tmp_path.glob("*.fdump")))
    wait_until(lambda: left_behind() == before)
    assert load(process.pid, tmp_path) == next(tmp_path.glob("*.fdump"))


def test_a_program_that_ends_while_it_is_waited_for(
    python314: str, running: Running, tmp_path: Path
) -> None:
    ending = "import os, threading, time\nthreading.Timer(3, os._exit, [0]).start()\n"
    code = f"{ending}{READY}time.sleep(600)"
    process = running(python314, "-c", code)
    assert why_not(process.pid, tmp_path, PATIENCE) == f"{process.pid}: it has ended"


def test_a_library_that_cannot_be_loaded(
    python314: str, running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libflameinject.so").write_text("no library")
    monkeypatch.setenv("FLAME_LIBRARY", str(tmp_path / "libflameinject.so"))
    process = running(python314, "-c", WAITING)
    found = why_not(process.pid, tmp_path)
    assert "the library cannot be loaded into it (OSError: " in found
    assert process.poll() is None


def test_a_folder_that_the_library_does_not_trust(
    python314: str, running: Running, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    process = running(python314, "-c", WAITING)
    assert "cannot record" in why_not(process.pid, tmp_path / "link")


def test_a_recording_that_was_stopped_does_not_begin_again(
    python314: str, running: Running, tmp_path: Path
) -> None:
    process = running(python314, "-c", WAITING)
    control = Control.open(load(process.pid, tmp_path))
    assert control
    control.stop()
    assert "stopped before" in why_not(process.pid, tmp_path)


@needs_root
def test_a_program_that_sees_other_files(python314: str, running: Running, tmp_path: Path) -> None:
    covered = f'mount -t tmpfs none {tmp_path} && exec "$@"'
    try:
        process = running("unshare", "--mount", "sh", "-c", covered, "sh", python314, "-c", WAITING)
    except AssertionError:
        pytest.skip("nothing can be mounted here")
    assert "run flame attach in there" in why_not(process.pid, tmp_path)


@needs_root
def test_root_loads_it_into_the_program_of_another_user(
    python314: str, running: Running, library: Path
) -> None:
    if subprocess.run([python314, "-c", ""], user=NOBODY, check=False).returncode:
        pytest.skip("another user cannot run this Python")
    process = running(python314, "-c", WAITING, user=NOBODY, group=NOBODY, extra_groups=[])
    with RemoteScript((NOBODY, NOBODY)) as errand:
        errand.prepare("")  # a folder of that user's
        folder = errand.place
        found = why_not(process.pid, Path("/root"))
        assert "/root has to belong to nobody or root" in found
        dump = load(process.pid, folder)
        assert dump.stat().st_uid == NOBODY
        for path in folder.iterdir():
            path.unlink()


def test_an_older_python_says_so(running: Running, tmp_path: Path) -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("this Python is not older")
    process = running(sys.executable, "-c", WAITING)
    assert "only releases of CPython 3.14 and 3.15" in why_not(process.pid, tmp_path)


def test_another_program_is_left_alone(start: Start, tmp_path: Path) -> None:
    assert "it is no Python program" in why_not(start("/bin/sleep", "60").pid, tmp_path)


def test_a_python_that_has_been_updated(python314: str, running: Running, tmp_path: Path) -> None:
    folder = Path(python314).resolve().with_name("old")
    copy = folder / "python3.14"
    try:
        folder.mkdir()
        shutil.copy(Path(python314).resolve(), copy)
        process = running(str(copy), "-c", WAITING)
    except OSError:
        pytest.skip("no room beside the Python")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert load(process.pid, tmp_path).parent == tmp_path


def test_a_process_that_is_gone() -> None:
    assert why_not(1 << 22).endswith("there is no such process")


def prepare(errand: RemoteScript, library: Path, folder: Path) -> None:
    """The script as `load` writes it."""
    words = (str(library), str(folder), str(errand.place))
    errand.prepare(f"{INJECTED.read_text()}\nattach{words!r}\n")


def run(script: Path) -> None:
    """What the other process does, here by a Python of any version."""
    subprocess.run([sys.executable, "-I", str(script)], check=True)


def test_the_script_says_what_came_of_it(library: Path, tmp_path: Path) -> None:
    with RemoteScript(ME) as errand:
        prepare(errand, library, tmp_path)
        run(errand.script)
        assert errand.wait(5, lambda: True) == "recording"
    assert len(list(tmp_path.glob("*.fdump"))) == 1


def test_a_script_that_nobody_waits_for_tidies_up_itself(library: Path, tmp_path: Path) -> None:
    with RemoteScript(ME) as errand:
        prepare(errand, library, tmp_path)
        assert errand.wait(0, lambda: True) is None
    assert errand.script.exists()
    run(errand.script)
    assert not errand.place.exists()
    assert len(list(tmp_path.glob("*.fdump"))) == 1


def test_an_answer_that_comes_at_the_last_moment_counts(library: Path, tmp_path: Path) -> None:
    with RemoteScript(ME) as errand:
        prepare(errand, library, tmp_path)
        run(errand.script)
        assert errand.wait(0, lambda: True) == "recording"


def write_to_pipe(path: Path) -> int:
    """Make a pipe that somebody has open, who writes nothing to it."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR)


@pytest.mark.parametrize(
    "put", [lambda path: path.symlink_to("/etc/passwd"), Path.mkdir, write_to_pipe]
)
def test_an_answer_that_is_no_plain_file_is_none(put: Callable[[Path], int | None]) -> None:
    with RemoteScript(ME) as errand:
        errand.prepare("")
        writer = put(errand.place / "said")
        before = descriptors()
        looks = iter(range(3))
        assert errand.wait(PATIENCE, lambda: next(looks, None) is not None) is None
        assert descriptors() == before
    if writer is not None:
        os.close(writer)
    shutil.rmtree(errand.place, ignore_errors=True)


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208 (its own is in it each time)
