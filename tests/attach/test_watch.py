"""Dumps that appear while something is watched, and those of others that do not count."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from flame.attach import watch
from flame.attach.library.control import Control
from flame.attach.watch import DumpWatch
from tests.attach.conftest import wait_until
from tests.attach.trees import RANKS, STEPS, Env, Tree, dumps_of, job_at, python
from tests.attach.trees import tree as tree
from tests.attach.trees import users_folder as users_folder
from tests.support.writers.fdumpfile import DumpFile

pytestmark = pytest.mark.deep

CHILD_ON_SIGNAL = f"""
import nvtx, os, signal, subprocess, sys

def begin(number, frame):
    subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True)

signal.signal(signal.SIGUSR1, begin)
{STEPS}
"""
# Not by signal.pause(): a signal just before that is seen after the next one.
LATE = CHILD_ON_SIGNAL.replace(STEPS, "import time\nwhile True: time.sleep(0.01)")
AGAIN = """
import subprocess, sys, time
while True:
    subprocess.run([sys.executable, "-c", sys.argv[1]], start_new_session=True)
"""
"""As torchrun does it: a worker that has died is started again."""


@pytest.fixture
def env(injected_env: Callable[..., Env], users_folder: Path) -> Env:
    """That of a process which is recorded to the user's folder."""
    return injected_env(users_folder, fake=False)


def paths(watch: DumpWatch) -> list[Path]:
    found = watch.new()
    for path, descriptor in found:
        if descriptor is not None:
            assert os.path.samestat(os.fstat(descriptor), path.stat())
            os.close(descriptor)
    return [path for path, _ in found]


def test_the_library_hands_the_dump_out(tree: Tree, env: Env) -> None:
    started = tree(*python(STEPS), env=env)
    (dump,) = dumps_of(job_at(started.pid))
    wait_until(dump.with_suffix(".sock").exists)
    ((path, descriptor),) = DumpWatch([started.pid], [dump]).new()
    assert path == dump and descriptor is not None
    dump.unlink()
    assert os.pread(descriptor, 8, 0) == b"FLAMEDMP"
    os.close(descriptor)


def following(watch: DumpWatch, count: int = 1) -> set[Path]:
    """The next dumps, so many of them."""
    found: set[Path] = set()

    def look() -> bool:
        new = paths(watch)
        assert found.isdisjoint(new)
        found.update(new)
        return len(found) >= count

    wait_until(look)
    assert len(found) == count
    return found


def test_what_is_there_comes_once(tree: Tree, env: Env) -> None:
    started = tree(*python(STEPS), env=env)
    dumps = dumps_of(job_at(started.pid))
    watch = DumpWatch([started.pid], dumps)
    assert paths(watch) == dumps
    assert paths(watch) == []


def test_it_is_found_by_its_process_alone(tree: Tree, env: Env, users_folder: Path) -> None:
    started = tree(*python(STEPS), env=env)
    assert following(DumpWatch([started.pid])) == set(users_folder.glob("*.fdump"))


def test_children_that_start_later(tree: Tree, env: Env, users_folder: Path) -> None:
    started = tree(*python(CHILD_ON_SIGNAL, STEPS), env=env)
    dumps = dumps_of(job_at(started.pid))
    watch = DumpWatch([started.pid], dumps)
    assert paths(watch) == dumps
    for _ in range(2):
        known = set(users_folder.glob("*.fdump"))
        os.kill(started.pid, signal.SIGUSR1)
        assert following(watch) == set(users_folder.glob("*.fdump")) - known


def test_workers_that_are_started_again(tree: Tree, env: Env) -> None:
    started = tree(*python(AGAIN, STEPS), env=env)
    job = job_at(started.pid)
    watch = DumpWatch([started.pid, job.members[0].pid], dumps_of(job))
    assert paths(watch) == dumps_of(job)
    os.kill(job.members[0].pid, signal.SIGKILL)
    (dump,) = following(watch)
    assert dump not in dumps_of(job)


def test_a_program_that_becomes_another(tree: Tree, env: Env, tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = "import nvtx, os, sys, time; nvtx.push_range('a')\n"
    code += f"while not os.path.exists({str(told)!r}): time.sleep(0.01)\n"
    code += f"os.execv(sys.executable, {python(STEPS)!r})"
    started = tree(*python(code), env=env)
    dumps = dumps_of(job_at(started.pid))
    watch = DumpWatch([started.pid], dumps)
    assert paths(watch) == dumps
    told.touch()
    assert len(following(watch)) == 1


def test_a_child_that_is_gone_before_anybody_looks(tree: Tree, env: Env) -> None:
    code = "import nvtx; nvtx.push_range('short')"
    started = tree(*python(CHILD_ON_SIGNAL, code), env=env)
    dumps = dumps_of(job_at(started.pid))
    watch = DumpWatch([started.pid], dumps)
    assert paths(watch) == dumps
    os.kill(started.pid, signal.SIGUSR1)
    folder = dumps[0].parent
    wait_until(lambda: any(b"short" in one.read_bytes() for one in folder.glob("*.fdump")))
    assert len(following(watch)) == 1


def test_other_jobs_in_the_folder_are_not_followed(
    tree: Tree, env: Env, users_folder: Path
) -> None:
    started = tree(*python(STEPS), env=env)
    watch = DumpWatch([started.pid], dumps_of(job_at(started.pid)))
    assert len(paths(watch)) == 1
    other = tree(*python(STEPS), env=env)
    assert job_at(other.pid)
    DumpFile(1 << 22).write(users_folder / "4194304-1.fdump")
    for _ in range(5):
        assert paths(watch) == []


def test_all_in_a_folder_that_was_named(tree: Tree, env: Env, users_folder: Path) -> None:
    watch = DumpWatch(folder=users_folder)
    assert paths(watch) == []
    path = DumpFile(1 << 22).write(users_folder / "4194304-1.fdump")
    assert paths(watch) == [path]
    tree(*python(RANKS, "3", *python(STEPS)), env=env)
    assert following(watch, 3) == set(users_folder.glob("*.fdump")) - {path}


def test_one_that_has_not_begun(tree: Tree, env: Env, users_folder: Path) -> None:
    started = tree(*python(LATE, STEPS), env=env)
    watch = DumpWatch([started.pid])
    assert paths(watch) == []
    wait_until(lambda: handles(started.pid, signal.SIGUSR1))
    os.kill(started.pid, signal.SIGUSR1)
    assert following(watch) == set(users_folder.glob("*.fdump"))


def handles(pid: int, number: int) -> bool:
    """Whether a process has a handler for that signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line.split()[1] for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_a_header_that_is_not_there_yet(users_folder: Path) -> None:
    watch = DumpWatch(folder=users_folder)
    path = users_folder / "7-1.fdump"
    path.write_bytes(b"")
    assert paths(watch) == []
    data = DumpFile(7).data()
    path.write_bytes(data[:40])
    assert paths(watch) == []
    path.write_bytes(data)
    assert paths(watch) == [path]


def test_where_a_process_writes_is_another_folder(tree: Tree, env: Env, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    words = ("sh", "-c", 'FLAME_DIR="$1" "$0" -c "$2" & "$0" -c "$2"; wait')
    started = tree(*words, sys.executable, other, STEPS, env=env, start_new_session=False)
    assert job_at(started.pid, members=2)
    found = following(DumpWatch([started.pid]), 2)
    assert len({one.parent for one in found}) == 2


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    assert paths(DumpWatch(folder=tmp_path / "none")) == []


def test_processes_that_are_gone() -> None:
    assert paths(DumpWatch([1 << 22])) == []


@pytest.mark.deep
def test_nobody_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def ask(dump: Path) -> Control | None:
        asked.append(dump)
        return Control.open(dump)

    monkeypatch.setattr(watch, "Control", SimpleNamespace(open=ask))
    doors = []
    for number in range(40):
        path = DumpFile(number).write(tmp_path / f"{number}.fdump")
        doors.append(socket.socket(socket.AF_UNIX))
        doors[-1].bind(str(path.with_suffix(".sock")))
        doors[-1].listen()
    assert len(DumpWatch(folder=tmp_path).new()) == 40
    # Each takes most of the time that there is for all of them.
    assert len(asked) <= 2
    for door in doors:
        door.close()
