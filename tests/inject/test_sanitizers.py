"""Under load from all sides the library has no race, no bad access, and loses nothing."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, records, text

pytestmark = pytest.mark.deep

THREADS = 32
ROUNDS = {"thread": 10, "address": 20}
# The thread sanitizer cannot follow a child that starts threads, and the library starts one there.
FORKS = {"thread": 0, "address": 3}
# Neither ends the program at the first report: it is to be seen whether it goes on undisturbed.
OPTIONS = {
    "TSAN_OPTIONS": "halt_on_error=0 second_deadlock_stack=1",
    "ASAN_OPTIONS": "detect_stack_use_after_return=1 detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
MEMORY = {"FLAME_MEMORY_EVENTS": "1"}
DUMP = "{pid}-*.fdump"


@dataclass(frozen=True)
class Stressed:
    """What came of one run of stress.cpp."""

    forks: int
    said: dict[str, int]
    errors: str
    dump: Path
    children: list[Path]


# Where CUPTI is older, and gets a thousand buffers; where its records are longer.
FAULTS = {
    "thread": ("thread", ""),
    "address": ("address", ""),
    "thread, many buffers": ("thread", "version:26,hoard,per_buffer:16"),
    "address, new records": ("address", "version:130400"),
}


@pytest.fixture(scope="module", params=FAULTS.values(), ids=list(FAULTS))
def stressed(
    request: pytest.FixtureRequest,
    sanitized: Callable[[str], Any],
    compiled: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Stressed:
    kind, faults = request.param
    folder = tmp_path_factory.mktemp(kind)
    build = sanitized(kind)
    program = compiled("stress.cpp", *build.flags)
    env = request.getfixturevalue("injected_env")(
        folder, fake=build.fake, library=build.library, FAKE_CUPTI=faults, **OPTIONS, **MEMORY
    )
    command = [str(program), str(THREADS), str(ROUNDS[kind]), str(FORKS[kind])]
    with subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        output, errors = process.communicate(timeout=10 * PATIENCE)
    assert process.returncode == 0, errors
    (dump,) = folder.glob(DUMP.format(pid=process.pid))
    children = [path for path in folder.glob("*.fdump") if path != dump]
    return Stressed(FORKS[kind], json.loads(output), errors, dump, children)


def names(of: dict[str, Any], column: Any) -> list[str]:
    """The texts of a column of text ids."""
    return [text(of, int(number)) for number in column]


def test_nothing_is_reported(stressed: Stressed) -> None:
    assert stressed.errors == ""


def test_dump_is_complete(stressed: Stressed) -> None:
    head = header(stressed.dump)
    assert head["state"] == 1 and head["dropped"] == 0
    assert stressed.dump.stat().st_size == head["tail"]


def test_every_launch_is_there_once_and_so_is_its_kernel(stressed: Stressed) -> None:
    of = records(stressed.dump)
    steady = {number for number, name in of["text"].items() if name == b"steady"}
    launched = of["launch"][np.isin(of["launch"]["symbol"], list(steady))]
    ran = of["kernel"][np.isin(of["kernel"]["symbol"], list(steady))]
    assert len(launched) == len(ran) == stressed.said["launches"]
    assert set(launched["correlation"]) == set(ran["correlation"])
    assert len(set(ran["correlation"])) == len(ran)
    assert (ran["tid"] != 0).all() and (ran["nvtx"] != 0).all()


def test_every_copy_and_set_is_there_once(stressed: Stressed) -> None:
    kinds = records(stressed.dump)["memop"]["kind"]
    assert np.count_nonzero(kinds == 0) == stressed.said["copies"]
    assert np.count_nonzero(kinds == 1) == stressed.said["sets"]


def test_every_call_that_may_block_is_there_once(stressed: Stressed) -> None:
    of = records(stressed.dump)
    api = 5
    rows = of["name"][of["name"]["kind"] == api]
    called = dict(zip(rows["id"].tolist(), names(of, rows["text"]), strict=True))
    found = Counter(called[number] for number in of["call"]["api"].tolist())
    assert found["cuMemFree_v2"] == stressed.said["frees"]
    assert found["cuMemAlloc_v2"] == stressed.said["frees"] + THREADS
    assert found["cuStreamSynchronize"] >= THREADS
    assert (of["call"]["start"] <= of["call"]["end"]).all() and not of["call"]["result"].any()


def test_all_memory_is_there_once_with_the_thread_that_asked_for_it(stressed: Stressed) -> None:
    rows = records(stressed.dump)["memory"]
    given, taken = (rows[rows["operation"] == number] for number in (1, 2))
    assert len(taken) == stressed.said["frees"] and len(given) >= len(taken) + THREADS
    assert (rows["tid"] != 0).all() and len(set(given["tid"].tolist())) > THREADS / 2
    assert len(set(rows["correlation"].tolist())) == len(rows)


def test_every_module_that_was_unloaded_is_told_once(stressed: Stressed) -> None:
    of = records(stressed.dump)
    ends = set(of["module_end"][["module", "context"]].tolist())
    assert len(of["module_end"]) == len(ends) == stressed.said["unloads"]
    assert ends < set(of["module"][["module", "context"]].tolist())


def test_every_replay_ran_the_three_kernels_of_the_graph(stressed: Stressed) -> None:
    of = records(stressed.dump)
    replayed = of["kernel"][of["kernel"]["graph_node"] != 0]
    assert len(replayed) == 3 * stressed.said["replays"]


def test_every_range_is_there_once(stressed: Stressed) -> None:
    of = records(stressed.dump)
    text_of = dict(zip(of["range_name"]["id"], names(of, of["range_name"]["text"]), strict=True))
    called = [text_of[number] for number in of["range"]["name"]]
    assert len([name for name in called if name != "late"]) == stressed.said["ranges"]


def test_children_have_dumps_of_their_own(stressed: Stressed) -> None:
    assert len(stressed.children) == stressed.forks
    for path in stressed.children:
        of = records(path)
        assert len(of["range"]) == 100
        assert set(names(of, of["range_name"]["text"])) == {"child"}
