"""Python stacks as the library sees them, against what Python itself says, in several versions."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiers import deep_except
from tests.support.waiting import PATIENCE
from tests.support.writers import fdumprecords

CASES = Path(__file__).with_name("python_cases.py")
MAX_DEPTH = 250

WALKED = (11, 12, 13, 14)
"""Minor versions whose frames are read without the GIL."""
TOLD = (9, 10)
"""Those whose frames are read with the GIL only."""

EACH = deep_except([sys.version_info[1]], WALKED)
"""The quick tier has only the interpreter of the tests: another has to be started."""

COMPARED = (
    *("nested", "many_lines", "sort_keys", "callbacks_from_c", "generators", "comprehensions"),
    *("classes", "cycles", "weak_references", "exceptions", "contexts", "coroutines", "executed"),
    *("redefined", "names", "deep", "tangled", "traced", "in_threads", "generator_elsewhere"),
)


Place = tuple[str, str, int]


@functools.cache
def python(minor: int) -> str:
    """A Python 3.``minor`` on this machine, or a skip."""
    known = (Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python")
    here = [sys.executable] if sys.version_info[1] == minor else []
    for name in [*here, *map(str, known), shutil.which(f"python3.{minor}") or ""]:
        script = "import sys, ctypes; print(sys.version_info[1])"
        if name and run([name, "-c", script], {}).stdout.strip() == str(minor):
            return name
    pytest.skip(f"there is no Python 3.{minor} here")


def run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


@dataclass
class Recording:
    """What a run of the cases said, and its dumps by process."""

    says: dict[str, list[dict[str, Any]]]
    dumps: dict[int, Path]
    pid: int
    output: str
    read: dict[int, dict[str, Any]] = field(default_factory=dict)
    stacks: dict[tuple[int, int], list[Place]] = field(default_factory=dict)

    def stack(self, node: int, pid: int | None = None) -> list[Place]:
        key = pid or self.pid, node
        if key not in self.stacks:
            self.stacks[key] = fdumprecords.stack(self.records(key[0]), node)
        return self.stacks[key]

    def records(self, pid: int) -> dict[str, Any]:
        if pid not in self.read:
            self.read[pid] = fdumprecords.records(self.dumps[pid])
        return self.read[pid]

    def meta(self) -> dict[str, list[str]]:
        return fdumprecords.meta(self.dumps[self.pid])


Record = Callable[..., Recording]


@pytest.fixture(scope="module")
def record(probe: Path, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Runs cases in a Python 3.``minor``."""

    @functools.cache
    def recorded(minor: int, *cases: str, **env: str) -> Recording:
        folder = tmp_path_factory.mktemp("dumps")
        env |= {"FLAME_DIR": str(folder), "PYTHONIOENCODING": "utf-8:surrogatepass"}
        # Since 3.12 Python warns of a fork beside other threads, such as the library's.
        quiet = "-Wignore::DeprecationWarning"
        process = subprocess.Popen(
            [python(minor), quiet, str(CASES), str(probe), *cases],
            env=os.environ | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output, _ = process.communicate(timeout=5 * PATIENCE)
        assert process.returncode == 0, output
        says = {name: each for line in lines_of(output) for name, each in json.loads(line).items()}
        dumps = {int(path.name.split("-")[0]): path for path in folder.glob("*.fdump")}
        return Recording(says, dumps, process.pid, output)

    return recorded


def lines_of(output: str) -> Iterator[str]:
    return (line for line in output.splitlines() if line.startswith("{"))


def differences(recording: Recording, case: str, ways: tuple[str, ...]) -> Iterator[Any]:
    """(what Python says, what the dump says) where that is not the same."""
    assert recording.says[case]
    for said in recording.says[case]:
        expected = [place(*each) for each in said["expected"]]
        if "whole" in said:
            got = recording.stack(said["whole"])
            if got != expected:
                yield expected, got
            continue
        for way in ways:  # on top is the function that captures
            got = recording.stack(said[way], said.get("pid"))[:-1]
            if got != expected[-(MAX_DEPTH - 1) :]:
                yield expected, got


def place(function: str, file: str, line: int) -> Place:
    return function, file.replace("\udc80", "\ufffd")[: 4096 - 3], line


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


@pytest.mark.parametrize("minor", EACH)
def test_offsets_are_those_of_the_headers(record: Record, minor: int, tmp_path: Path) -> None:
    include = run(
        [python(minor), "-c", "import sysconfig; print(sysconfig.get_path('include'))"], {}
    )
    folder = Path(include.stdout.strip())
    if not (folder / "internal" / "pycore_frame.h").is_file():
        pytest.skip(f"there are no headers of Python 3.{minor}")
    source, program = tmp_path / "offsets.c", tmp_path / "offsets"
    source.write_text(OFFSETS)
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    # Debian's pyconfig.h includes another, by its place below the folder above.
    command = [compiler, "-w", f"-I{folder}", "-idirafter", str(folder.parent)]
    command += [str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    expected = json.loads(run([str(program)], {}).stdout)
    assert record(minor, "offsets").says["offsets"][0]["offsets"] == expected


OFFSETS = """
#define Py_BUILD_CORE 1
#include <Python.h>
#if PY_VERSION_HEX < 0x030e0000
#include <internal/pycore_frame.h>
#else
#include <internal/pycore_interpframe_structs.h>
#endif
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX < 0x030d0000
#define THREAD offsetof(PyThreadState, cframe), offsetof(_PyCFrame, current_frame)
#define CODE f_code
#define INSTRUCTION prev_instr
#else
#define THREAD offsetof(PyThreadState, current_frame), 0
#define CODE f_executable
#define INSTRUCTION instr_ptr
#endif
#if PY_VERSION_HEX < 0x030c0000
#define VERSION 0
#else
#define VERSION offsetof(PyCodeObject, co_version)
#endif
#define F(field) offsetof(_PyInterpreterFrame, field)
#define C(field) offsetof(PyCodeObject, field)
int main(void) {
    size_t all[] = {THREAD, F(CODE), F(previous), F(INSTRUCTION), F(owner), C(co_flags),
        C(co_firstlineno), VERSION, C(co_filename), C(co_qualname), C(co_linetable),
        C(_co_firsttraceable), C(co_code_adaptive), offsetof(PyASCIIObject, length),
        offsetof(PyASCIIObject, state), sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject),
        offsetof(PyVarObject, ob_size), offsetof(PyBytesObject, ob_sval)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) printf(i ? ", %zu" : "[%zu", all[i]);
    printf("]");
}
"""

MISLED = """
import ctypes, os, sys
RELEASED, HELD = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])
table = (ctypes.c_uint64 * 64).in_dll(ctypes.pythonapi, "_PyRuntime")
code = 3 + 3 + 13 + 9 + 6
assert table[code + 3] == 128  # co_qualname
table[code + 3] = table[code + 2]  # co_name
def outer():
    def inner():
        HELD.probe_begin()
        return [(HELD.probe_stack(), RELEASED.probe_stack()) for _ in range(5)]
    return inner()
print(outer())
"""


def test_walk_that_fails_its_check_is_not_used(probe: Path, tmp_path: Path) -> None:
    env = {"FLAME_DIR": str(tmp_path)}
    done = run([python(13), "-c", MISLED, str(probe)], env)
    assert done.returncode == 0, done.stderr
    nodes = json.loads(done.stdout.replace("(", "[").replace(")", "]"))
    assert [released for _, released in nodes] == [0] * 5
    (dump,) = tmp_path.glob("*.fdump")
    of = fdumprecords.records(dump)
    for held, _ in nodes:
        names = [function for function, _, _ in fdumprecords.stack(of, held)]
        assert names == ["<module>", "outer", "outer.<locals>.inner"]
    assert fdumprecords.meta(dump)["python"][0].endswith(": frames only where the GIL is held")
    assert any("not where they should be" in each for each in fdumprecords.meta(dump)["note"])


OTHER_LAYOUTS = """
import ctypes, sys
HELD = ctypes.PyDLL(sys.argv[1])
def inner():
    return [HELD.probe_check_as(minor) for minor in (11, 12) if minor != sys.version_info[1]]
print(inner())
"""
DIFFERENT = 1


@pytest.mark.parametrize("minor", EACH)
def test_a_layout_that_is_another_is_found_out_without_harm(probe: Path, minor: int) -> None:
    done = run([python(minor), "-c", OTHER_LAYOUTS, str(probe)], {})
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {DIFFERENT}


def runtime_table(minor: int, **wrong: int) -> ctypes.Array[ctypes.c_char]:
    """The beginning of _PyRuntime: an offset of 100 for everything, but for that of ``wrong``."""
    places = {13: {"thread_frame": 20, "bytecode": 40}, 14: {"thread_frame": 23, "bytecode": 45}}
    words = [0x03000000 | minor << 16, 0, *[100] * 100]
    for name, offset in wrong.items():
        words[2 + places[minor][name]] = offset
    return ctypes.create_string_buffer(struct.pack(f"<8s{len(words)}Q", b"xdebugpy", *words))


@pytest.mark.parametrize("minor", [13, 14])
def test_a_table_of_offsets_that_cannot_be_is_refused(probe: Path, minor: int) -> None:
    takes = ctypes.CDLL(str(probe)).probe_takes
    assert takes(minor, runtime_table(minor))
    assert not takes(minor, runtime_table(minor, thread_frame=(1 << 16) + 72))
    assert not takes(minor, runtime_table(minor, thread_frame=1 << 63))
    assert not takes(minor, runtime_table(minor, bytecode=8))


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
