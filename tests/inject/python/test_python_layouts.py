"""Where in its memory Python keeps frames: as its headers say, and what is wrong is found out."""

from __future__ import annotations

import ctypes
import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.inject.python.stack_recording import EACH, Record, python, run
from tests.support.writers import fdumprecords


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
