"""What is found of processes that really run: recorded ones, trees of them, and others."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from flame.attach.discover import finder as find
from flame.attach.discover.dump_counts import is_fresh
from flame.attach.discover.finder import ProcessFinder
from flame.attach.discover.finished import read_header
from flame.attach.discover.model import Discovery, Job, WatchMethod
from flame.attach.discover.proc import all_processes, descendants, read_process
from flame.attach.library.control import Control
from flame.attach.listing import as_text
from tests.attach.conftest import NOBODY, as_nobody, needs_root, wait_until
from tests.attach.trees import (
    IDLE,
    LAUNCHES,
    RANKS,
    STEPS,
    Env,
    Tree,
    dumps_of,
    end,
    job_at,
    pids_of,
    python,
    script,
)
from tests.attach.trees import tree as tree
from tests.attach.trees import users_folder as users_folder
from tests.inject.recorded_program import until
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumpfile import DumpFile

MakeEnv = Callable[..., Env]

FORKS = f"""
import os
if os.fork() == 0:
    {STEPS.replace(chr(10), chr(10) + "    ")}
{STEPS}
"""


@pytest.fixture
def env(injected_env: MakeEnv, users_folder: Path) -> Env:
    """That of a process which is recorded to the user's folder, with the double as its driver."""
    return injected_env(users_folder)


@pytest.fixture(autouse=True)
def _counts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dumps are counted even where the machine is too busy to do that at once."""
    monkeypatch.setattr(find, "_TIMEOUT", PATIENCE)


def jobs_with(pid: int, finder: ProcessFinder | None = None) -> list[Job]:
    """The jobs that a process is part of."""
    jobs = (finder or ProcessFinder()).find().jobs
    return [job for job in jobs if pid in {job.root.pid, *pids_of(job.members)}]


# processes that record


def test_a_program_that_records(tree: Tree, env: Env, tmp_path: Path, users_folder: Path) -> None:
    path = script(tmp_path, "train.py", STEPS)
    started = tree(sys.executable, path, "--lr", "0.1", "--hf-token", "secret", env=env)
    job = job_at(started.pid)
    (dump,) = users_folder.glob("*.fdump")
    root = job.root
    assert job.members == (root,)
    assert (root.name, root.method, root.dumps) == ("train", WatchMethod.DUMP, (dump,))
    assert root.command == f"{sys.executable} {path} --lr 0.1 --hf-token ***"
    assert (root.user, root.parent, root.denied) == (getpass.getuser(), os.getpid(), "")
    assert 0 <= root.age < PATIENCE
    assert (job.kernels, job.launches, job.folder) == (0, 0, users_folder)
    wait_until(lambda: job_at(started.pid).active)
    assert job.bytes >= dump.stat().st_size // 8 > 0


def test_kernels_and_launches_are_counted(tree: Tree, env: Env) -> None:
    started = tree(*python(LAUNCHES), env=env)
    finder = ProcessFinder()
    first = job_at(started.pid, finder=finder)
    wait_until(lambda: job_at(started.pid, finder=finder).kernels >= 20)
    later = job_at(started.pid, finder=finder)
    assert later.launches >= later.kernels >= first.kernels
    assert later.bytes >= first.bytes


def test_without_counting_nothing_is_counted(tree: Tree, env: Env) -> None:
    started = tree(*python(LAUNCHES), env=env)
    finder = ProcessFinder(count=False)
    job = job_at(started.pid, finder=finder)
    assert (job.kernels, job.launches) == (-1, -1)
    assert job.bytes > 0
    wait_until(lambda: job_at(started.pid, finder=finder).active)


def test_a_large_dump_is_not_counted(users_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic_ns()
    dump = DumpFile(1 << 22, start=now - 1_000)
    dump.ended = False
    dump.launch(0, 1, 1)
    path = dump.write(users_folder / "4194304-1.fdump")
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # of which only the first chunk is there
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)  # It stays as new as it is.
    begin = time.process_time()
    (job,) = jobs_with(1 << 22)
    assert time.process_time() - begin < 2
    assert (job.kernels, job.launches, job.active) == (-1, -1, True)


def test_one_that_has_paused_is_not_active(tree: Tree, env: Env) -> None:
    started = tree(*python("import nvtx\nwith nvtx.annotate('once'): pass\n" + IDLE), env=env)
    finder = ProcessFinder()
    assert job_at(started.pid, finder=finder)
    wait_until(lambda: not job_at(started.pid, finder=finder).active)


@pytest.mark.deep
def test_a_stopped_process_still_records(tree: Tree, env: Env) -> None:
    started = tree(*python(STEPS), env=env)
    (dump,) = dumps_of(job_at(started.pid))
    os.kill(started.pid, signal.SIGSTOP)
    wait_until(lambda: not job_at(started.pid).active)
    wait_until(lambda: not is_fresh(read_header(dump)))  # It says no more that it goes on.
    assert job_at(started.pid).root.method is WatchMethod.DUMP


# trees


def test_a_fork_belongs_to_the_job(tree: Tree, env: Env) -> None:
    started = tree(*python(FORKS), env=env)
    job = job_at(started.pid, members=2)
    assert job.root.pid == started.pid
    assert len(pids_of(job.members)) == 2
    assert {one.parent for one in job.members} == {os.getpid(), started.pid}
    assert len(set(dumps_of(job))) == 2


def test_ranks_of_a_launcher_are_one_job(tree: Tree, env: Env) -> None:
    started = tree(*python(RANKS, "8", *python(STEPS)), env=env)
    job = job_at(started.pid, members=8)
    assert job.root.pid == started.pid
    assert job.root.dumps == ()
    assert {one.parent for one in job.members} == {started.pid}
    assert len(pids_of(job.members)) == len(set(dumps_of(job))) == 8


def test_a_shell_in_between_is_the_root(tree: Tree, env: Env, tmp_path: Path) -> None:
    inner = script(
        tmp_path, "inner.sh", f"{sys.executable} {script(tmp_path, 'a.py', STEPS)}; true"
    )
    outer = script(tmp_path, "run.sh", f"sh {inner}; true")
    started = tree("sh", outer, env=env, start_new_session=False)
    job = job_at(started.pid)
    assert job.root.name == "run"
    assert [one.name for one in job.members] == ["a"]


def test_what_runs_in_one_session_of_a_shell_are_several_jobs(tree: Tree, env: Env) -> None:
    words = " ".join(["$0", "-c", '"$1"'])
    started = tree("sh", "-c", f"{words} & {words} & wait", *python(STEPS)[::2], env=env)
    wait_until(lambda: len(below_pids(started.pid)) == 3)
    for pid in below_pids(started.pid)[1:]:
        assert pids_of(job_at(pid).members) == {pid}
    assert jobs_with(started.pid) == []


def test_two_jobs_of_one_parent(tree: Tree, env: Env) -> None:
    first = tree(*python(STEPS), env=env)
    assert pids_of(job_at(first.pid).members) == {first.pid}
    second = tree(*python(STEPS), env=env)
    assert pids_of(job_at(second.pid).members) == {second.pid}
    finder = ProcessFinder()
    pids = [job.root.pid for job in finder.find().jobs]
    assert pids.index(second.pid) < pids.index(first.pid)  # newest first


def below_pids(pid: int) -> list[int]:
    return [one.pid for one in descendants([pid], all_processes())]


# names


def test_a_name_with_escapes(tree: Tree, env: Env, tmp_path: Path) -> None:
    name = "\x1b[31mred\n"
    started = tree(sys.executable, script(tmp_path, f"{name}.py", STEPS), env=env)
    job = job_at(started.pid)
    assert job.root.name == name  # Who shows it has to see to it.
    for part in as_text(Discovery((job,), ()), 80, "utf-8").splitlines():
        assert part.isprintable()


# of other users


@needs_root
def test_of_another_user_no_command_is_told(tree: Tree, env: Env, library: Path) -> None:
    # Where these programs lie, nobody else may look.
    with TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        copy = shutil.copy(library, folder)
        (folder / "dumps").mkdir()
        os.chown(folder / "dumps", NOBODY, NOBODY)
        code = f"import nvtx, os\nos.setresuid({NOBODY}, {NOBODY}, {NOBODY})\n{STEPS}"
        more = {"FLAME_DIR": str(folder / "dumps"), "NVTX_INJECTION64_PATH": str(copy)}
        started = tree(*python(code, "--secret"), env=env | more)
        root = job_at(started.pid).root
        wait_until(lambda: any((folder / "dumps").glob("*.sock")))  # made after the dump
    assert (root.user, root.command, root.method) == ("nobody", "", WatchMethod.DUMP)
    assert "secret" not in root.name


@needs_root
def test_another_user_finds_nothing_and_says_so(tree: Tree, env: Env) -> None:
    started = tree(*python(STEPS), env=env)
    assert job_at(started.pid)

    def look() -> str:
        os.environ["FLAME_DIR"] = "/nonexistent"
        found = ProcessFinder().find()
        assert not found.jobs
        return found.notes[0]

    said = as_nobody(look)
    assert said.endswith("of other users cannot be looked at: sudo flame attach --list shows all")


# where dumps are


def test_a_dump_that_was_removed(tree: Tree, env: Env, users_folder: Path) -> None:
    started = tree(*python(LAUNCHES), env=env)
    dump = dumps_of(job_at(started.pid))[0]
    dump.unlink()
    job = job_at(started.pid)
    assert job.folder is None
    assert job.kernels >= 0
    assert dumps_of(job)[0].read_bytes().startswith(b"FLAMEDMP")


def test_one_whose_recording_was_stopped(tree: Tree, env: Env) -> None:
    started = tree(*python(STEPS), env=env)
    dump = dumps_of(job_at(started.pid))[0]
    control = until(lambda: Control.open(dump))  # it listens a moment after it has a dump
    assert control.stop()
    control.close()
    finder = ProcessFinder()
    assert jobs_with(started.pid, finder) == []
    assert finder.stopped(started.pid) == (dump,)


def test_one_in_a_container(users_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)  # It stays as new as it is.
    dump = DumpFile(1 << 22, start=now - 5_000_000_000)
    dump.ended, dump.end = False, 5_000_000_000
    dump.meta("process", "python")
    dump.meta("command", "python train.py API_KEY=secret")  # of a library that masked nothing
    path = dump.write(users_folder / "4194304-1.fdump")
    (job,) = jobs_with(1 << 22)
    assert (job.root.name, job.root.command) == ("train", "python train.py API_KEY=***")
    assert dumps_of(job) == [path]
    assert job.root.age == 5


# that do not record (yet)


def test_one_that_has_not_begun(tree: Tree, env: Env) -> None:
    started = tree(
        "sh", "-c", f"{sys.executable} -c '{IDLE}'; true", env=env, start_new_session=False
    )
    wait_until(lambda: jobs_with(started.pid))
    (job,) = jobs_with(started.pid)
    assert job.root.method is WatchMethod.DUMP
    assert dumps_of(job) == []


def test_a_python_without_the_library(tree: Tree) -> None:
    code = f"import os; os.fork(); {IDLE}"
    started = tree(*python(code))
    wait_until(lambda: len(below_pids(started.pid)) == 2 and jobs_with(started.pid))
    method = WatchMethod.REMOTE if sys.version_info >= (3, 14) else WatchMethod.CPU
    (job,) = jobs_with(started.pid)
    assert job.root.pid == started.pid
    assert job.members == (job.root,)
    assert job.root.method is method


def test_another_program_is_not_listed(tree: Tree) -> None:
    started = tree("sleep", "60")
    finder = ProcessFinder()
    assert jobs_with(started.pid, finder) == []
    one = finder.candidate(started.pid)
    assert one
    assert (one.name, one.method) == ("sleep", WatchMethod.NONE)


@pytest.mark.parametrize("words", [("-m", "flame"), ("-X", "dev", "-m", "flame")])
def test_flame_is_not_listed(
    tree: Tree, library: Path, words: tuple[str, ...], tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    command = f"touch {ready}; sleep 60"
    words = (*words, "record", "-q", "sh", "-c", command)
    env = os.environ | {"FLAME_LIBRARY": str(library)}
    started = tree(sys.executable, *words, cwd=tmp_path, env=env)
    wait_until(ready.exists)
    finder = ProcessFinder()
    assert jobs_with(started.pid, finder) == []
    assert finder.is_flame(started.pid)


def test_processes_that_vanish(tree: Tree) -> None:
    tree("sh", "-c", "while true; do /bin/true & /bin/true; done")
    finder = ProcessFinder()
    for _ in range(30):
        finder.find()


def test_a_program_that_becomes_another(tree: Tree, env: Env) -> None:
    code = (
        f"import nvtx, os, sys; nvtx.push_range('a'); os.execv(sys.executable, {python(STEPS)!r})"
    )
    started = tree(*python(code), env=env)
    finder = ProcessFinder()
    wait_until(lambda: jobs_with(started.pid, finder) and finder.find().finished)
    (job,) = jobs_with(started.pid, finder)
    (ended,) = finder.find().finished
    assert set(ended.dumps).isdisjoint(dumps_of(job))


def test_what_was_killed_has_ended(tree: Tree, env: Env) -> None:
    finder = ProcessFinder()
    started = tree(*python(LAUNCHES), env=env)
    wait_until(lambda: job_at(started.pid, finder=finder).kernels > 0)  # empty dumps are left out
    job = job_at(started.pid, finder=finder)
    end(started)
    wait_until(lambda: not jobs_with(started.pid, finder))
    (ended,) = finder.find().finished
    assert (ended.pids, ended.dumps) == ((started.pid,), tuple(dumps_of(job)))
    assert 0 <= ended.age < PATIENCE
    assert ended.kernels >= job.kernels


def test_the_process_table() -> None:
    own = read_process(os.getpid())
    assert own
    assert (own.parent, own.uid, own.is_zombie) == (os.getppid(), os.geteuid(), False)
    assert own.session == os.getsid(0)
    assert read_process(1 << 22) is None


def test_a_zombie_is_none_of_them() -> None:
    child = subprocess.Popen(["true"])
    wait_until(lambda: (one := read_process(child.pid)) and one.is_zombie)
    assert jobs_with(child.pid) == []
    child.wait()
