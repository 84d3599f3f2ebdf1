"""The list for people and for scripts, and the names in it, whoever chose them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.attach.discover.model import (
    Candidate,
    Discovery,
    FinishedRecording,
    Job,
    WatchMethod,
    is_flame,
    job_name,
)
from flame.attach.listing import as_json, as_text
from flame.core.shown_text import cells

DUMP = Path("/tmp/flame-0/7-1.fdump")
ROOT = Candidate(7, "train", "python train.py", "ann", 63.0, WatchMethod.DUMP, (DUMP,), 1)
JOB = Job(ROOT, (ROOT,), 12_345, 23_456, 5_000_000, True, DUMP.parent)
ENDED = FinishedRecording((DUMP, DUMP), "old", (4, 5), 7_300.0, 1_000, 3)


def job(method: WatchMethod, *members: Candidate, kernels: int = 0, launches: int = 0) -> Job:
    return Job(Candidate(9, "serve", "", "ann", 5.0, method), members, kernels, launches)


def table(*jobs: Job, width: int = 100) -> list[list[str]]:
    lines = as_text(Discovery(jobs, ()), width, "utf-8").splitlines()
    return [line.split() for line in lines[1:]]


def test_a_table() -> None:
    text = as_text(Discovery((JOB,), (ENDED,), ("a note",)), 100, "utf-8")
    assert text == (
        "   pid  name   user   age  processes  kernels     size  how        command\n"
        "●    7  train  ann   63 s          1   12,345  5.00 MB  recording  python train.py\n"
        "\n"
        "  pid  ended      age  processes  kernels     size  dump\n"
        f"    4  old    2 h ago          2        3  1.00 kB  {DUMP} and 1 more\n"
        "\n"
        "note: a note\n"
    )


def test_ways() -> None:
    waiting = Candidate(9, "serve", "", "ann", 5.0, WatchMethod.DUMP)
    lost = Candidate(9, "serve", "", "ann", 5.0, WatchMethod.DUMP, denied="it is in a container")
    jobs = (
        job(WatchMethod.DUMP, waiting),
        job(WatchMethod.DUMP, lost),
        job(WatchMethod.REMOTE),
        job(WatchMethod.CPU),
    )
    shown = [" ".join(line[5:]) for line in table(*jobs)]
    assert shown == ["1 nothing yet", "1 out of reach", "0 can be loaded", "0 CPU only"]


def test_what_was_not_counted() -> None:
    assert "?" in table(Job(ROOT, (ROOT,), -1, -1))[0]


def test_without_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    assert as_text(Discovery((JOB,), ()), 100, "ascii").isascii()
    monkeypatch.setenv("FLAME_ASCII", "1")
    assert as_text(Discovery((JOB,), ()), 100, "utf-8").isascii()


def test_nothing() -> None:
    assert "flame record -- CMD" in as_text(Discovery((), ()), 80, "utf-8")


@given(st.text(max_size=60), st.text(max_size=200), st.text(max_size=20), st.integers(60, 200))
def test_any_names_stay_in_their_line(name: str, command: str, user: str, width: int) -> None:
    one = Candidate(7, name, command, user, 1.0, WatchMethod.DUMP, (DUMP,))
    lines = as_text(Discovery((Job(one, (one,)),), (), (name,)), width, "utf-8").split("\n")
    assert len(lines) == 5
    assert all(line.isprintable() for line in lines)
    assert all(cells(line) <= max(width, 140) for line in lines[:2])


def test_json() -> None:
    found = json.loads(as_json(Discovery((JOB,), (ENDED,), ("a note",))))
    process = {
        "pid": 7,
        "parent": 1,
        "name": "train",
        "user": "ann",
        "age_s": 63.0,
        "way": "recording",
        "denied": "",
        "dumps": [str(DUMP)],
    }
    more = {"command": "python train.py", "active": True, "folder": "/tmp/flame-0"}
    numbers = {"kernels": 12_345, "launches": 23_456, "bytes": 5_000_000}
    ended = {"name": "old", "pids": [4, 5], "age_s": 7_300.0, "kernels": 3, "bytes": 1_000}
    assert found == {
        "jobs": [{**process, **more, **numbers, "processes": [process]}],
        "ended": [{**ended, "dumps": [str(DUMP)] * 2}],
        "notes": ["a note"],
    }


def test_json_of_what_is_not_known() -> None:
    text = as_json(Discovery((job(WatchMethod.CPU, kernels=-1, launches=-1),), ()))
    (one,) = json.loads(text)["jobs"]
    assert (one["kernels"], one["launches"], one["folder"], one["way"]) == (None, None, None, "cpu")


def test_json_of_any_text() -> None:
    name = "\x1b[31m\udcff"
    one = Candidate(7, name, name, "ann", 1.0, WatchMethod.CPU)
    text = as_json(Discovery((Job(one, ()),), ()))
    assert text.isascii()
    assert json.loads(text)["jobs"][0]["name"] == name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/bin/python3 -u train.py --lr 1", "train"),
        ("/usr/bin/python3 /opt/bin/torchrun --nproc 8 train.py", "train"),
        ("python -m vllm.entrypoints.api", "vllm.entrypoints.api"),
        ("bash run.sh", "run"),
        ("./simulate -n 3", "simulate"),
    ],
)
def test_names(command: str, name: str) -> None:
    assert job_name("comm", command.split()) == name


def test_names_of_processes_that_say_one_themselves() -> None:
    assert job_name("nginx", ["nginx: worker process"]) == "nginx"
    assert job_name("kworker/0:1", []) == "kworker/0:1"


@pytest.mark.parametrize(
    ("command", "known"),
    [
        ("python /home/ann/bin/flame view x", True),
        ("python -X dev -m flame attach", True),
        ("python -W ignore -I /bin/flame", True),
        ("python -m flamenco", False),
        ("python train.py flame", False),
        ("python -c flame", False),
        ("python", False),
    ],
)
def test_flame_itself(command: str, known: bool) -> None:
    assert is_flame(command.split()) is known
