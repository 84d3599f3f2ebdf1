"""``flame doctor``: each thing that recording needs, whether it works here, and what to do."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from flame._version import __version__
from flame.core.compiled.library import compiled
from flame.doctor import check as doctor_check
from flame.doctor import gpu, library, machine
from flame.doctor.check import Check
from flame.doctor.report import as_json, as_text
from tests.cli.conftest import Flame, spawn
from tests.support.compiled import only_numpy
from tests.support.waiting import PATIENCE

CHECKS = [
    *("driver", "gpus", "pc_sampling", "library", "cupti", "python", "nsys", "ncu", "nvdisasm"),
    *("injection", "nvtx", "folder", "temporary", "cache", "reading", "terminal"),
]


def found(text: str) -> dict[str, dict[str, Any]]:
    return {one["key"]: one for one in json.loads(text)["checks"]}


def test_a_machine_with_a_gpu(recorder: None) -> None:
    done = spawn("doctor", "--json")
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    assert done.stdout.isascii()
    assert json.loads(done.stdout)["can_record"] is True
    checks = found(done.stdout)
    assert list(checks) == CHECKS
    assert all(set(one) == {"key", "title", "state", "text", "fix"} for one in checks.values())
    for key, text in {
        "library": __version__,
        "driver": "CUDA 13.0",
        "gpus": "Simulated GPU",
        "cupti": "13.0.1",
        "python": "{}.{}.{}".format(*sys.version_info),
    }.items():
        assert checks[key]["state"] == "ok", checks[key]
        assert text in checks[key]["text"]


def test_cupti_that_another_tool_has(recorder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUPTI", "no_subscriber")
    done = spawn("doctor", "--json")
    assert done.returncode == 1
    cupti = found(done.stdout)["cupti"]
    assert cupti["state"] == "missing"
    assert "MULTIPLE_SUBSCRIBERS" in cupti["text"]
    assert "no other tool may use it" in cupti["fix"]


TRIED = "/a/libcupti.so.13: cuptiSubscribe: CUPTI_ERROR_UNKNOWN (999)"


@pytest.mark.parametrize(
    ("facts", "state", "text", "fix"),
    [
        (
            {"cupti": "12.9", "cupti_path": "/b/libcupti.so.12", "cupti_refused": TRIED},
            "ok",
            f"12.9, /b/libcupti.so.12 (instead of {TRIED})",
            "",
        ),
        ({"cupti": TRIED, "driver": "12.4"}, "missing", TRIED, "be no newer than the driver"),
        ({"cupti": TRIED}, "absent", f"works only with a driver ({TRIED})", ""),
        (
            {"cupti": "no libcupti found", "driver": "13.0"},
            "missing",
            "no libcupti found",
            "NVIDIA's base and runtime images have none: pip install nvidia-cuda-cupti (CUDA 13)",
        ),
        ({"cupti": "FLAME_CUPTI_PATH is no"}, "missing", "FLAME_CUPTI_PATH is no", "another one"),
    ],
)
def test_which_cupti_there_is(
    facts: dict[str, str], state: str, text: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_wheels", lambda: iter(()))
    check = library._cupti(library._Trial(facts=facts))
    assert (check.state, check.text) == (state, text)
    assert fix in check.fix and bool(check.fix) == bool(fix)


def test_cupti_of_a_wheel_is_told_where_a_program_would_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wheel = Path("/site-packages/nvidia/cu13/lib/libcupti.so.13")
    monkeypatch.setattr(library, "_wheels", lambda: iter([wheel]))
    check = library._cupti(library._Trial(facts={"cupti": "no libcupti found"}))
    assert (check.state, check.text) == (
        "ok",
        f"{wheel}: programs that load CUDA from there have it",
    )


def test_what_reads_large_traces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if compiled():
        assert machine.compiled_part().state == "ok"
    with only_numpy():
        monkeypatch.setattr(machine, "LIBRARY", Path(__file__))
        assert machine.compiled_part().fix == "unset FLAME_NO_NATIVE"
        del os.environ["FLAME_NO_NATIVE"]
        monkeypatch.setattr(machine, "compiled", lambda: None)
        assert machine.compiled_part().fix == "install flame again: its library does not fit"
        monkeypatch.setattr(machine, "LIBRARY", tmp_path / "none.so")
        assert "where there is a C compiler" in machine.compiled_part().fix


def test_a_machine_without_one(recorder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    monkeypatch.setattr(gpu, "_PARAMETERS", Path("/none"))
    checks = {check.key: check for check in gpu.checks()}
    if checks["driver"].state == "ok":
        pytest.skip("this machine has a driver")
    assert {key: one.state for key, one in checks.items()} == {
        "driver": "missing",
        "gpus": "missing",
        "pc_sampling": "absent",
    }
    assert "--gpus all" in checks["driver"].fix
    done = spawn("doctor")
    assert done.returncode == 1
    *_, verdict = done.stdout.splitlines()
    assert verdict.startswith("A GPU cannot be recorded here (driver, GPUs")
    assert verdict.endswith("; NVTX ranges can.")


def test_without_the_library(flame: Flame, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAME_LIBRARY", str(folder / "gone.so"))
    result = flame("doctor", "--json")
    assert result.code == 1
    checks = found(result.out)
    assert checks["library"]["state"] == "missing"
    assert "gone.so: no such library" in checks["library"]["text"]
    assert checks["cupti"]["state"] == checks["python"]["state"] == "absent"


def test_a_library_that_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bad.so").write_bytes(b"no library")
    monkeypatch.setenv("FLAME_LIBRARY", str(folder / "bad.so"))
    first, *_ = library.checks()
    assert first.state == "missing"
    assert "bad.so: cannot be loaded: " in first.text


def test_other_tools_are_named_and_no_other_variable_is_shown(recorder: None) -> None:
    tool = "/opt/nvidia/nsight-compute/2025.3/libcuda-injection.so"
    private = {"SECRET_TOKEN": "hunter2", "TERM": "xterm-hunter2", "FLAME_PC": "hunter2"}
    environment = {**os.environ, **private, "CUDA_INJECTION64_PATH": tool}
    for form in ([], ["--json"]):
        out = spawn("doctor", *form, env=environment).stdout
        assert f"CUDA_INJECTION64_PATH names Nsight Compute ({tool})" in out
        assert "hunter2" not in out
    assert found(out)["injection"]["state"] == "limited"
    assert found(out)["driver"]["state"] == "ok", "the driver must not load that tool here"


@pytest.mark.parametrize(
    ("parameters", "rights", "state"),
    [
        ("RmProfilingAdminOnly: 0\n", "0", "ok"),
        ("Other: 1\nRmProfilingAdminOnly: 1\n", "000001ffffffffff", "ok"),
        ("RmProfilingAdminOnly: 1\n", "0000000000000000", "limited"),
        ("Other: 1\n", "0", "absent"),
    ],
)
def test_who_may_sample(
    parameters: str, rights: str, state: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "params").write_text(parameters)
    (folder / "status").write_text(f"Name:\tx\nCapEff:\t{rights}\n")
    monkeypatch.setattr(gpu, "_PARAMETERS", folder / "params")
    monkeypatch.setattr(gpu, "_STATUS", folder / "status")
    check = gpu._sampling()
    assert check.state == state
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in check.fix) == (state == "limited")


def test_a_driver_that_hangs_or_crashes_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = folder / "probe.py"
    monkeypatch.setattr(doctor_check, "_PROBE", probe)
    for code, error in [
        ("import time; time.sleep(600)", "no answer within 1 s"),
        ("import os; os.kill(os.getpid(), 11)", "it crashes (Segmentation fault)"),
        ("raise SystemExit(3)", "it ends with exit code 3"),
    ]:
        probe.write_text(code)
        monkeypatch.setattr(doctor_check, "TIMEOUT", 1.0 if "sleep" in code else PATIENCE)
        assert doctor_check.probe("driver") == {"error": error}


def test_tools_say_their_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in {
        "nsys": "echo NVIDIA Nsight Systems version 2025.3.2.474-253236389321v0",
        "ncu": "exit 1",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin")
    checks = {check.key: check for check in machine.tools()}
    assert checks["nsys"].text == f"2025.3.2.474, {folder}/nsys"
    assert (checks["ncu"].state, checks["ncu"].text) == ("ok", f"{folder}/ncu")
    monkeypatch.setenv("PATH", "/none")
    assert {check.key: check for check in machine.tools()}["ncu"].state == "absent"


@pytest.mark.parametrize(
    ("script", "state", "text"),
    [
        ("echo 'Cuda tools, release 13.5, V13.5.37'", "ok", "13.5.37, {}"),
        ("exit 1", "limited", "{} (FLAME_NVDISASM) does not run; instructions with PC samples"),
    ],
)
def test_whether_instructions_will_have_text(
    script: str, state: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("FLAME_NVDISASM", str(program))
    *_, check = machine.tools()
    assert (check.key, check.state) == ("nvdisasm", state)
    assert check.text.startswith(text.format(program))


def test_without_a_disassembler_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLAME_NVDISASM", raising=False)
    monkeypatch.setattr("flame.core.sass.nvdisasm._candidates", lambda: iter(()))
    *_, check = machine.tools()
    assert (check.key, check.state) == ("nvdisasm", "absent")
    assert check.fix == "pip install nvidia-cuda-nvdisasm"


def test_a_folder_that_is_gone_is_no_obstacle(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = folder / "gone"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    check, _ = machine.folders()
    assert check.state == "limited"
    assert "-o DIR" in check.fix


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(folder: Path) -> None:
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    check, _ = machine.folders()
    assert check.text == f"{folder}: not writable"


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "all colours"),
        ({"TERM": "xterm-256color"}, "256 colours"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "no colours"),
        ({"TERM": "vt100"}, "few colours"),
        ({}, "no colours"),
    ],
)
def test_what_the_terminal_can_show(environment: dict[str, str], text: str) -> None:
    assert machine.terminal(environment).text.startswith(f"{text}, ")


def test_marks_are_ascii_where_nothing_else_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [Check("a", "one", "ok", "evil\x1b[2J"), Check("b", "two", "missing", "no", "do")]
    monkeypatch.setenv("FLAME_ASCII", "1")
    text = as_text(checks)
    assert text.isascii()
    assert text.splitlines()[:3] == [
        r"ok one            evil\x1b[2J",
        "NO two            no",
        "                  -> do",
    ]
    assert json.loads(as_json(checks))["can_record"] is False


def test_doctor_takes_no_path(flame: Flame) -> None:
    assert "unknown: x" in flame("doctor", "x").complaint()


def test_the_cache_is_shown_with_its_bounds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("FLAME_CACHE_SIZE", "2GB")
    monkeypatch.setenv("FLAME_CACHE_DAYS", "7")
    assert machine.cache().state == "ok"
    assert not (folder / "flame").exists(), "a look makes nothing"
    (folder / "flame" / "sass").mkdir(0o700, parents=True)
    (folder / "flame" / "one.sqlite").write_bytes(bytes(1000))
    (folder / "flame" / "sass" / "two.sass").write_bytes(bytes(500))
    told = machine.cache()
    assert told.text == f"{folder}/flame: 1.50 kB of at most 2.00 GB, 7 days after the last use"


def test_a_cache_that_is_not_used_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("FLAME_CACHE_DAYS", "many")
    told = machine.cache()
    assert (told.state, told.text.partition(":")[0]) == ("limited", "FLAME_CACHE_DAYS")
    assert "unset FLAME_CACHE_SIZE FLAME_CACHE_DAYS" in told.fix
    monkeypatch.delenv("FLAME_CACHE_DAYS")
    (folder / "flame").mkdir()
    (folder / "flame").chmod(0o777)
    told = machine.cache()
    assert told.state == "limited"
    assert "others may write to" in told.text
