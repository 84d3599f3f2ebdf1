"""Python stacks as the library sees them, against what Python itself says, in several versions."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.inject.python.stack_recording import EACH, MAX_DEPTH, Record, differences, python, run
from tests.support.writers import fdumprecords

TOLD = (9, 10)
"""Those whose frames are read with the GIL only."""

COMPARED = (
    *("nested", "many_lines", "sort_keys", "callbacks_from_c", "generators", "comprehensions"),
    *("classes", "cycles", "weak_references", "exceptions", "contexts", "coroutines", "executed"),
    *("redefined", "names", "deep", "tangled", "traced", "in_threads", "generator_elsewhere"),
)


@pytest.mark.parametrize("case", COMPARED)
@pytest.mark.parametrize("minor", EACH)
def test_stack_is_what_python_says(record: Record, minor: int, case: str) -> None:
    recording = record(minor, *COMPARED)
    assert list(differences(recording, case, ("held", "released"))) == []
    (said,) = recording.meta()["python"]
    assert re.fullmatch(rf"3\.{minor}\.\d+", said)


@pytest.mark.parametrize("case", ["own_texts", "without_lines", "unknown_thread", "subinterpreter"])
@pytest.mark.parametrize("minor", EACH)
def test_odd_stack(record: Record, minor: int, case: str) -> None:
    assert list(differences(record(minor, case), case, ("held", "released"))) == []


def test_greenlets(record: Record) -> None:
    pytest.importorskip("greenlet")
    recording = record(sys.version_info[1], "greenlets")
    assert list(differences(recording, "greenlets", ("held", "released"))) == []


@pytest.mark.parametrize("minor", EACH)
def test_stack_cut_at_its_limit(record: Record, minor: int) -> None:
    recording = record(minor, *COMPARED)
    whole, cut = (recording.says["deep"][at]["released"] for at in (0, 9))
    nodes = {}
    for row in recording.records(recording.pid)["node"]:
        nodes[int(row["id"])] = (int(row["parent"]), int(row["flags"]))
    for node, flags in ((whole, 0), (cut, 1)):
        path = [node]
        while nodes[path[-1]][0]:
            path.append(nodes[path[-1]][0])
        assert [nodes[each][1] for each in path] == [0] * (len(path) - 1) + [flags]
    assert len(recording.stack(cut)) == MAX_DEPTH


@pytest.mark.parametrize("minor", EACH)
def test_nothing_is_read_before_the_check(record: Record, minor: int) -> None:
    recording = record(minor, "before_any_check")
    assert list(differences(recording, "before_any_check", ("held", "released"))) == []


@pytest.mark.parametrize("minor", EACH)
def test_forked_child_has_its_own_stacks(record: Record, minor: int) -> None:
    recording = record(minor, "forked")
    for case in ("forked", "forked in child"):
        assert list(differences(recording, case, ("held", "released"))) == []
    assert len(recording.dumps) == 2


@pytest.mark.deep
@pytest.mark.parametrize("minor", TOLD)
def test_older_python_with_the_gil_only(record: Record, minor: int) -> None:
    recording = record(minor, "nested", "many_lines", "deep", "generators", "exceptions", "forked")
    for case, says in recording.says.items():
        assert list(differences(recording, case, ("held",))) == []
        assert {said["released"] for said in says} == {0}
    assert recording.meta()["python"][0].endswith(": frames only where the GIL is held")


@pytest.mark.deep
@pytest.mark.parametrize("minor", EACH)
def test_threads_capture_while_others_churn(record: Record, minor: int) -> None:
    recording = record(minor, "stress")
    del recording.says["stress"][:-300]  # the last ones are enough to look at
    assert list(differences(recording, "stress", ("held", "released"))) == []
    assert len(recording.says["stress"]) > 20


@pytest.mark.parametrize("minor", EACH)
def test_threads_in_the_middle_of_it_at_the_end(record: Record, minor: int) -> None:
    for times in "123":
        record(minor, "daemons", TIMES=times)


@pytest.mark.parametrize("minor", EACH)
def test_lines_of_every_instruction(record: Record, minor: int) -> None:
    says = record(minor, "lines").says["lines"]
    assert [each for each in says if each["wrong"]] == []
    assert sum(each["instructions"] for each in says) > 10_000


@pytest.mark.parametrize("minor", EACH)
def test_texts_of_every_kind(record: Record, minor: int) -> None:
    for each in record(minor, "texts").says["texts"]:
        text, told = (
            "".join("\ufffd" if "\ud800" <= c < "\ue000" else c for c in each["text"]),
            each["told"],
        )
        assert told == text or (len(told.encode()) > 4096 - 4 and text.startswith(told))


TWO = "import ctypes, sys; p = ctypes.PyDLL(sys.argv[1]); p.probe_start(); print(p.probe_stack())"


def test_switched_off(probe: Path, tmp_path: Path) -> None:
    env = {"FLAME_DIR": str(tmp_path), "FLAME_PYTHON": "0"}
    assert run([sys.executable, "-c", TWO, str(probe)], env).stdout == "0\n"
    (dump,) = tmp_path.glob("*.fdump")
    assert fdumprecords.meta(dump)["python"] == ["no frames: switched off by FLAME_PYTHON=0"]


def test_python_too_old_for_frames(probe: Path, tmp_path: Path) -> None:
    assert run([python(8), "-c", TWO, str(probe)], {"FLAME_DIR": str(tmp_path)}).stdout == "0\n"
    (dump,) = tmp_path.glob("*.fdump")
    (said,) = fdumprecords.meta(dump)["python"]
    assert said.startswith("3.8.") and said.endswith(": no frames: this Python cannot be read")


def test_python_inside_another_program(
    probe: Path, compiled: Callable[..., Path], tmp_path: Path
) -> None:
    folder, name = sysconfig.get_config_vars("LIBDIR", "INSTSONAME")
    shared = Path(str(folder)) / str(name)
    if not shared.name.endswith(".so.1.0") or not shared.is_file():
        pytest.skip("this Python has no shared library")
    program = compiled("python_embedded.cpp")
    env = {"FLAME_DIR": str(tmp_path), "PYTHONHOME": sysconfig.get_config_var("prefix")}
    done = run([str(program), str(probe), str(shared)], env)
    assert done.returncode == 0, done.stderr
    (dump,) = tmp_path.glob("*.fdump")
    of = fdumprecords.records(dump)
    captured = [(when, int(node)) for when, node in map(str.split, done.stdout.splitlines())]
    assert [when for when, _ in captured] == [
        "before",
        "loaded",
        *("inside", "outside", "after") * 2,
    ]
    for when, node in captured:
        expected = [("<module>", "<string>", 4), ("embedded", "<string>", 3)]
        assert fdumprecords.stack(of, node) == (expected if when == "inside" else []), when
