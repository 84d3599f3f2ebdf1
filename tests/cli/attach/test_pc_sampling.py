"""``flame attach --pc``: PC sampling of a program that is recorded already, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.attach.discover.model import Job
from tests.attach.conftest import wait_until
from tests.attach.trees import IDLE, LAUNCHES, RANKS, STEPS, Tree, dumps_of, job_at, python
from tests.cli.attach.conftest import Env
from tests.cli.conftest import Flame
from tests.support.writers.fdumprecords import header, records

BOTH = "--pc switches PC sampling and nothing else: not with --list or --stop"


def samples(dump: Path) -> int:
    return int(records(dump)["sample"]["samples"].sum())


def launching_job(pid: int, members: int = 1) -> Job:
    """The job with that root, as soon as so many processes of it have kernels recorded."""
    job = job_at(pid, members)
    wait_until(lambda: all(len(records(dump)["kernel"]) for dump in dumps_of(job)))
    return job


def test_sampling_begins_and_ends(flame: Flame, tree: Tree, env: Env) -> None:
    started = tree(*python(LAUNCHES), env=env)
    (dump,) = dumps_of(job_at(started.pid))
    wait_until(lambda: len(records(dump)["kernel"]) >= 20)
    result = flame("attach", started.pid, "--pc", "continuous:12")
    assert (result.code, result.out) == (0, "")
    assert result.said() == [f"{started.pid}: PC sampling (continuous:12) in 1 context"]
    wait_until(lambda: samples(dump) > 0)
    result = flame("attach", started.pid, "--pc", "off")
    assert result.code == 0
    assert result.said() == [f"{started.pid}: PC sampling is off"]
    there = samples(dump)
    assert flame("attach", "--stop", started.pid).code == 0
    assert samples(dump) == there and header(dump)["state"] == 1
    assert len(list(dump.parent.glob("cubins/*.cubin"))) == 1
    ended = flame("attach", started.pid, "--pc", "continuous")
    assert ended.code == 3
    assert ended.said() == [f"python [{started.pid}]: its recording has ended"]


def test_all_processes_of_a_job(flame: Flame, tree: Tree, env: Env) -> None:
    started = tree(*python(RANKS, "2", *python(LAUNCHES)), env=env)
    pids = [one.pid for one in launching_job(started.pid, members=2).members]
    result = flame("attach", started.pid, "--pc", "serialized")
    assert result.code == 0
    lines = sorted(result.said())
    assert [int(line.partition(":")[0]) for line in lines] == sorted(pids)
    assert all("PC sampling (serialized) " in line for line in lines)


def test_a_process_without_gpu_work_is_no_failure(
    flame: Flame, tree: Tree, env: Env, users_folder: Path
) -> None:
    ranges, launches = tree(*python(STEPS), env=env), tree(*python(LAUNCHES), env=env)
    assert job_at(ranges.pid) and launching_job(launches.pid)
    result = flame("attach", users_folder, "--pc", "continuous")
    assert result.code == 0
    assert f"{ranges.pid}: no GPU work of it is recorded" in result.said()
    alone = flame("attach", ranges.pid, "--pc", "continuous")
    assert alone.code == 3
    assert alone.said() == [f"{ranges.pid}: no GPU work of it is recorded"]


def test_who_may_not_is_told_what_to_do(flame: Flame, tree: Tree, env: Env) -> None:
    started = tree(*python(LAUNCHES), env=env | {"FAKE_CUPTI": "no_pc_permission"})
    assert launching_job(started.pid)
    result = flame("attach", started.pid, "--pc", "continuous")
    assert (result.code, result.out) == (3, "")
    (line,) = result.said()
    assert line.startswith(f"{started.pid}: PC sampling is not allowed for this user: run as root")
    assert started.poll() is None


def test_what_does_not_record(flame: Flame, tree: Tree, env: Env) -> None:
    started = tree(*python(IDLE))
    result = flame("attach", started.pid, "--pc", "continuous")
    assert result.code == 3
    assert result.said() == [f"python [{started.pid}]: records nothing"]


def test_nobody_answers(flame: Flame, tree: Tree, env: Env, users_folder: Path) -> None:
    started = tree(*python(LAUNCHES), env=env)
    (dump,) = dumps_of(job_at(started.pid))
    wait_until(lambda: any(users_folder.glob("*.sock")))
    for one in users_folder.glob("*.sock"):
        one.unlink()
    result = flame("attach", started.pid, "--pc", "continuous")
    assert result.code == 3
    assert result.said() == [f"{dump}: nobody answers beside it"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--pc", "continuous"], "--pc: name what to sample: flame attach PID --pc continuous"),
        (["1", "--pc", "often"], "--pc 'often': choose continuous, serialized or off"),
        (["1", "--pc", ""], "--pc '': choose continuous, serialized or off"),
        (["1", "--pc", "continuous:4"], "--pc 'continuous:4': choose a period from 5 to 31"),
        (["1", "--pc", "off", "--stop"], BOTH),
        (["--pc", "off", "--list"], BOTH),
    ],
)
def test_what_it_refuses(flame: Flame, words: list[str], complaint: str) -> None:
    result = flame("attach", *words)
    assert result.code == 2
    assert result.complaint().startswith(complaint)
