"""``flame attach`` without the app: the list, ending a recording, and what it refuses."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from flame.attach.command import attach, target_of
from flame.core.errors import InputError
from flame.core.loading.many import load_all
from flame.core.options import LoadOptions
from tests.attach.conftest import wait_until
from tests.attach.trees import IDLE, LAUNCHES, RANKS, STEPS, Tree, dumps_of, job_at, python, script
from tests.cli.attach.conftest import Env
from tests.cli.conftest import Flame, spawn

NEEDS = "attach shows the app, which needs a terminal: flame attach --list, or flame view PATH"


# --list


def test_the_list(flame: Flame, tree: Tree, env: Env, folder: Path) -> None:
    started = tree(sys.executable, script(folder, "train.py", LAUNCHES), env=env)
    wait_until(lambda: job_at(started.pid).kernels > 0)
    result = flame("attach", "--list")
    assert (result.code, result.err) == (0, "")
    (line,) = (one for one in result.lines if f" {started.pid} " in one)
    assert line.split()[:3] == ["●", str(started.pid), "train"]
    assert " recording " in line


def test_the_list_for_scripts(flame: Flame, tree: Tree, env: Env) -> None:
    started = tree(*python(RANKS, "2", *python(STEPS)), env=env)
    assert job_at(started.pid, members=2)
    result = flame("attach", "--list", "--json")
    (job,) = (one for one in json.loads(result.out)["jobs"] if one["pid"] == started.pid)
    assert (job["way"], job["folder"]) == ("recording", env["FLAME_DIR"])
    assert [one["parent"] for one in job["processes"]] == [started.pid] * 2
    for one in job["processes"]:
        assert Path(*one["dumps"]).name.startswith(f"{one['pid']}-")


def test_every_key_is_documented(flame: Flame) -> None:
    text = flame("attach", "--help").out
    jobs = "pid name command user age_s way active kernels launches bytes folder processes parent"
    for key in f"{jobs} denied dumps pids jobs ended notes".split():
        assert key in text.partition("--list --json")[2]


def test_without_a_terminal_the_list_is_shown(flame: Flame) -> None:
    result = flame("attach")
    assert result.code == 2
    assert result.out
    assert result.said() == [NEEDS]


# --stop


def test_stop(flame: Flame, tree: Tree, env: Env) -> None:
    started = tree(*python(LAUNCHES), env=env)
    dump = dumps_of(job_at(started.pid))[0]
    wait_until(lambda: job_at(started.pid).kernels >= 20)
    result = flame("attach", "--stop", started.pid)
    assert (result.code, result.out) == (0, "")
    (line,) = result.said()
    kernels = load_all([dump]).counts["kernel"]
    assert line.startswith(f"stopped python [{started.pid}]: 1 process, {kernels:,} kernels, ")
    assert line.endswith(f"see it with: flame view {dump}")
    assert started.poll() is None
    again = flame("attach", "--stop", started.pid)
    assert again.code == 0
    assert again.said() == [f"python [{started.pid}]: its recording has ended already"]


def test_stop_all_of_a_folder(flame: Flame, tree: Tree, env: Env, users_folder: Path) -> None:
    started = tree(*python(RANKS, "3", *python(STEPS)), env=env)
    assert job_at(started.pid, members=3)
    result = flame("attach", "--stop", users_folder)
    assert result.code == 0
    (line,) = result.said()
    assert line.startswith("stopped users: 3 processes, 0 kernels, ")
    assert line.endswith(f"see it with: flame view {users_folder}")


def test_stop_what_does_not_record(flame: Flame, tree: Tree, env: Env) -> None:
    other, early = tree(*python(IDLE)), tree(*python(IDLE), env=env)
    for started in (other, early):
        result = flame("attach", "--stop", started.pid)
        assert result.code == 3
        assert result.said() == [f"python [{started.pid}]: records nothing"]


def test_stop_without_an_answer(flame: Flame, tree: Tree, env: Env, users_folder: Path) -> None:
    started = tree(*python(STEPS), env=env)
    (dump,) = dumps_of(job_at(started.pid))
    wait_until(dump.with_suffix(".sock").exists)  # which is made after the dump
    for one in users_folder.glob("*.sock"):
        one.unlink()
    result = flame("attach", "--stop", started.pid)
    assert result.code == 3
    assert result.said() == [
        f"{dump}: nobody answers beside it: end the process to end its recording"
    ]


# what it refuses


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--json"], "--json goes with --list"),
        (
            ["--list", "1"],
            "--list shows all there is: it goes with no target, and not with --stop",
        ),
        (
            ["--list", "--stop"],
            "--list shows all there is: it goes with no target, and not with --stop",
        ),
        (["--stop"], "--stop: name what to stop: flame attach --stop PID"),
        ([""], "no process named: flame attach --list shows what there is"),
        (["1", "--window", "5s"], "--window '5s': choose from 10s, 60s, all"),
        (["1", "--window", "mark"], "--window 'mark': choose from 10s, 60s, all"),
        (["1", "--levels", "x"], "--levels: unknown level 'x'"),
        (["1"], NEEDS),
    ],
)
def test_usage(flame: Flame, words: list[str], complaint: str) -> None:
    result = flame("attach", *words)
    assert result.code == 2
    assert result.complaint().startswith(complaint)


def test_one_target_only(flame: Flame) -> None:
    assert flame("attach", "1", "2").code == 2


def test_no_terminal(tree: Tree) -> None:
    done = spawn("attach", str(tree("sleep", "60").pid))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"flame: {NEEDS}\n"


def test_a_python_where_py_spy_is_not(
    tree: Tree, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("the library is loaded into this Python")
    started = tree(*python(IDLE, "a b"))
    target = target_of(str(started.pid))
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(InputError) as raised:
        attach(target, LoadOptions())
    said, _, rest = str(raised.value).partition("; without the GPU, ")
    assert said.startswith(f"{started.pid}: nothing records it (python); start it with: ")
    assert shlex.split(said)[-3:] == ["-c", IDLE, "a b"]
    assert "pip install py-spy" in rest


def test_a_dump_that_has_ended_is_opened_as_such(
    tree: Tree, env: Env, capfd: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run(python("import nvtx; nvtx.push_range('a')"), env=env, check=True)
    assert done.returncode == 0
    attached = attach(target_of(env["FLAME_DIR"]), LoadOptions())
    assert attached.ended
    assert attached.watch
    ((path, descriptor),) = attached.watch.new()
    attached.feed.add(path, descriptor)  # type: ignore[union-attr]
    attached.feed.close()
    title = Path(env["FLAME_DIR"]).name
    assert capfd.readouterr().err == (
        f"flame: {title}: its recording has ended, nothing more will come\n"
    )
