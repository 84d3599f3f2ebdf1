"""What a pid, a name and a path mean, on a machine on which programs really run."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from flame.attach.discover.finder import ProcessFinder
from flame.attach.discover.model import Candidate, Job, WatchMethod
from flame.attach.target import AttachTarget, resolve_target, target_of_finished, target_of_job
from flame.attach.watch import DumpWatch
from flame.core.errors import FlameError, InputError, UsageError
from tests.attach.conftest import as_nobody, needs_root, wait_until
from tests.attach.trees import (
    IDLE,
    RANKS,
    STEPS,
    Env,
    Tree,
    dumps_of,
    end,
    job_at,
    python,
    script,
)
from tests.attach.trees import tree as tree
from tests.attach.trees import users_folder as users_folder
from tests.support.writers.fdumpfile import DumpFile

SOON = "; flame attach --list shows what there is"


@pytest.fixture
def env(injected_env: Callable[..., Env], users_folder: Path) -> Env:
    """That of a process which is recorded to the user's folder."""
    return injected_env(users_folder, fake=False)


def chosen(text: str | int | Path) -> AttachTarget:
    return resolve_target(str(text), ProcessFinder(count=False))


def refused(text: str | int, error: type[FlameError] = InputError) -> str:
    with pytest.raises(error) as raised:
        chosen(text)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# by pid


def test_a_process_that_records(tree: Tree, env: Env, tmp_path: Path) -> None:
    started = tree(sys.executable, script(tmp_path, "train.py", STEPS), env=env)
    dumps = tuple(dumps_of(job_at(started.pid)))
    title = f"train [{started.pid}]"
    assert chosen(started.pid) == AttachTarget(
        title, WatchMethod.DUMP, started.pid, (started.pid,), dumps
    )


def test_a_process_and_all_below_it(tree: Tree, env: Env) -> None:
    started = tree(*python(RANKS, "3", *python(STEPS)), env=env)
    job = job_at(started.pid, members=3)
    target = chosen(started.pid)
    assert (target.root, len(target.pids), set(target.dumps)) == (started.pid, 3, {*dumps_of(job)})
    rank = job.members[1]
    assert (chosen(rank.pid).pids, chosen(rank.pid).dumps) == ((rank.pid,), rank.dumps)


def test_flame_record_stands_for_its_command(tree: Tree, env: Env, library: Path) -> None:
    words = (sys.executable, "-m", "flame", "record", "-q", "-o", "run.flame", *python(STEPS))
    started = tree(*words, env=env | {"FLAME_LIBRARY": str(library)}, cwd=env["FLAME_DIR"])

    def has_dump() -> bool:
        with suppress(InputError):  # The command has not been started yet.
            return bool(chosen(started.pid).dumps)
        return False

    wait_until(has_dump)
    target = chosen(started.pid)
    assert target.method is WatchMethod.DUMP
    assert len(target.pids) == 1


def test_one_that_has_not_begun(tree: Tree, env: Env) -> None:
    started = tree(*python(IDLE), env=env)
    target = chosen(started.pid)
    assert (target.method, target.pids, target.dumps) == (WatchMethod.DUMP, (started.pid,), ())
    assert not target.ended


def test_a_python_without_the_library(tree: Tree) -> None:
    started = tree(*python(IDLE))
    way = WatchMethod.REMOTE if sys.version_info >= (3, 14) else WatchMethod.CPU
    assert chosen(started.pid) == AttachTarget(
        f"python [{started.pid}]", way, started.pid, (started.pid,)
    )


def test_another_program(tree: Tree) -> None:
    started = tree("sleep", "1e2")
    assert refused(started.pid) == (
        f"{started.pid}: nothing records it (sleep); start it with: flame record -- sleep 1e2"
    )


def test_its_command_line_is_quoted(tree: Tree) -> None:
    words = ("sh", "-c", "sleep 60; true", "a b", "$HOME", "c'd")
    started = tree(*words)
    said = refused(started.pid)
    assert shlex.split(said.partition(" flame record -- ")[2]) == list(words)


def test_secrets_in_its_command_line_are_masked(tree: Tree) -> None:
    started = tree("sh", "-c", "sleep 60; true", "--token", "secret")
    assert refused(started.pid).endswith("flame record -- sh -c 'sleep 60; true' --token '***'")


def test_no_process() -> None:
    assert refused(1 << 22) == f"{1 << 22}: there is no such process"
    assert refused("0") == "0: there is no such process"


def test_flame_itself() -> None:
    assert refused(os.getpid(), UsageError) == f"{os.getpid()}: is flame itself{SOON}"


def test_a_thread() -> None:
    woken = threading.Event()
    thread = threading.Thread(target=woken.wait)
    thread.start()
    said = refused(thread.native_id or 0)
    woken.set()
    thread.join()
    assert said.endswith(f"it is a thread of the process {os.getpid()}: name that one")


def test_a_zombie(tree: Tree) -> None:
    started = tree("true")
    wait_until(lambda: refused(started.pid) == f"{started.pid}: it has ended")


def test_one_that_listens_a_moment_after_its_dump_is_there(
    tree: Tree, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flame.attach import command

    started = tree(*python(STEPS), env=env)
    (dump,) = dumps_of(job_at(started.pid))
    socket = dump.with_suffix(".sock")
    wait_until(socket.exists)
    late = socket.rename(socket.with_suffix(".late"))
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", lambda _: late.rename(socket))
        assert command.stop(str(started.pid)) == 0
    assert chosen(started.pid).ended


def test_one_that_was_stopped(tree: Tree, env: Env) -> None:
    from flame.attach.command import stop

    started = tree(*python(STEPS), env=env)
    dumps = tuple(dumps_of(job_at(started.pid)))
    assert stop(str(started.pid)) == 0
    target = chosen(started.pid)
    assert (target.dumps, target.ended) == (dumps, True)


# by name


def test_by_the_name_of_its_script(tree: Tree, env: Env, tmp_path: Path) -> None:
    started = tree(sys.executable, script(tmp_path, "qZx1.py", STEPS), env=env)
    assert job_at(started.pid)
    for name in ("qZx1", "qZx1.py", "zx1"):
        assert chosen(name).root == started.pid


def test_a_script_of_that_name_is_no_dump(
    tree: Tree, env: Env, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tree(sys.executable, script(tmp_path, "qZx2.py", STEPS), env=env)
    assert job_at(started.pid)
    monkeypatch.chdir(tmp_path)
    assert chosen("qZx2.py").root == started.pid


def test_several_of_one_name(tree: Tree, env: Env, tmp_path: Path) -> None:
    path = script(tmp_path, "qZx3.py", STEPS)
    pids = [tree(sys.executable, path, env=env).pid for _ in range(2)]
    assert all(map(job_at, pids))
    said = refused("qZx3", UsageError)
    assert said.startswith("qZx3: 2 jobs are called so, name one by its pid: ")
    for pid in pids:
        assert f"{pid} (qZx3, " in said


def test_one_that_records_comes_first(tree: Tree, env: Env, tmp_path: Path) -> None:
    path = script(tmp_path, "qZx4.py", STEPS)
    recorded, other = tree(sys.executable, path, env=env), tree(sys.executable, path)
    assert job_at(recorded.pid)
    wait_until(
        lambda: len([job for job in ProcessFinder().find().jobs if job.root.name == "qZx4"]) == 2
    )
    assert chosen("qZx4").root == recorded.pid
    end(recorded)
    wait_until(lambda: chosen("qZx4").root == other.pid)


def test_the_name_of_a_program_that_is_not_recorded(tree: Tree, tmp_path: Path) -> None:
    program = tmp_path / "qZx5"
    program.symlink_to("/bin/sleep")
    started = tree(program, "60")
    assert refused("qZx5").startswith(f"{started.pid}: nothing records it (qZx5); start it with: ")
    tree(program, "61")
    said = refused("qZx5", UsageError)
    assert said == "qZx5: 2 processes are called so: name one by its pid"


def test_no_such_name() -> None:
    said = refused("qZx6")
    assert said == f"qZx6: no process is called so, and there is no such file{SOON}"


# by path


def test_a_folder_that_is_written_to(tree: Tree, env: Env, users_folder: Path) -> None:
    started = tree(*python(RANKS, "2", *python(STEPS)), env=env)
    assert job_at(started.pid, members=2)
    target = chosen(f"{users_folder}/")
    assert (target.title, target.folder, target.ended) == ("users", users_folder, False)
    assert set(target.dumps) == set(users_folder.glob("*.fdump"))
    end(started)
    wait_until(lambda: chosen(users_folder).ended)


def test_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = DumpFile().write(tmp_path / "1-1.fdump")
    assert chosen(str(path)) == AttachTarget(
        "1-1.fdump", WatchMethod.DUMP, 0, (100,), (path,), ended=True
    )
    monkeypatch.chdir(tmp_path)
    assert chosen("1-1.fdump").dumps == (Path("1-1.fdump"),)
    path.rename(tmp_path / "other")
    assert chosen("other").dumps == (Path("other"),)


def test_a_link_that_was_named(tmp_path: Path) -> None:
    path = DumpFile(1 << 22).write(tmp_path / "4194304-1.fdump")
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "x.fdump"
    link.symlink_to(path)
    for named in (link, folder):
        target = chosen(named)
        assert target.dumps == (path,) and target.title == named.name
        assert [one for one, _ in DumpWatch(target.pids, target.dumps, target.folder).new()] == [
            path
        ]


def test_a_dump_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)  # It stays as new as it is.
    dump = DumpFile(start=now)
    dump.ended = False
    path = dump.write(tmp_path / "1-1.fdump")
    assert not chosen(str(path)).ended
    dump.start -= 60_000_000_000
    dump.write(path)
    assert chosen(str(path)).ended


def test_a_recording_in_which_there_is_nothing_yet(tmp_path: Path) -> None:
    folder = tmp_path / "train.flame"
    folder.mkdir()
    assert chosen(str(folder)) == AttachTarget("train.flame", WatchMethod.DUMP, folder=folder)


def test_paths_that_are_no_recording(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    said = f"{tmp_path}: is a folder with no dump (*.fdump) in it{SOON}"
    assert refused(str(tmp_path)) == said
    assert refused(f"{tmp_path}/text") == f"{tmp_path}/text: not a dump of flame"
    said = f"{tmp_path}/none: no such file or folder, and no process is called so{SOON}"
    assert refused(f"{tmp_path}/none") == said
    said = f"{tmp_path}/a.fdump: cannot be read: No such file or directory"
    assert refused(f"{tmp_path}/a.fdump") == said


# from the list


def test_a_job_that_nobody_can_watch() -> None:
    one = Candidate(7, "work", "", "ann", 1.0, WatchMethod.NONE)
    with pytest.raises(InputError, match="flame record -- CMD"):
        target_of_job(Job(one, (one,)))


def test_a_job_whose_dumps_are_out_of_reach() -> None:
    one = Candidate(7, "work", "", "ann", 1.0, WatchMethod.DUMP, denied="it is in a container")
    with pytest.raises(InputError, match="7: it is in a container"):
        target_of_job(Job(one, (one,)))


def test_an_ended_recording(users_folder: Path) -> None:
    dump = DumpFile(41)
    dump.launch(1, 2, 1)
    path = dump.write(users_folder / "41-1.fdump")
    (ended,) = ProcessFinder().find().finished
    assert target_of_finished(ended) == AttachTarget(
        "", WatchMethod.DUMP, 0, (41,), (path,), ended=True
    )


@pytest.mark.parametrize("text", ["9" * 5_000, "x" * 5_000, "/" + "x" * 5_000, "a\0b", "\u0663"])
def test_what_nothing_can_be_called(text: str) -> None:
    assert "no process is called so" in refused(text)


@needs_root
def test_what_may_not_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir(mode=0o700)
    path = DumpFile(1).write(tmp_path / "secret" / "run.fdump")
    for shown in (path, path.parent / "deeper"):
        said = as_nobody(partial(refused, str(shown)))
        assert said == f"{shown}: cannot be read: Permission denied"


def test_a_folder_in_which_not_all_is_a_dump(tmp_path: Path) -> None:
    folder = tmp_path / "run.flame"
    folder.mkdir()
    (folder / "a.fdump").write_bytes(b"")
    said = refused(str(folder))
    assert said == f"{folder / 'a.fdump'}: not a dump of flame"
    good = DumpFile(1).write(folder / "b.fdump")
    assert good in chosen(str(folder)).dumps
