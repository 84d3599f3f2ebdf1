"""Where the code of functions comes from: kept beside the cubin, in the cache, or from nvdisasm."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flame.core.options import silent
from flame.core.sass import nvdisasm
from flame.core.sass.disassembly import find_codes
from tests.core.sass.cubin_recordings import (
    CRC,
    GEMM_16,
    GEMM_32,
    GEMMS,
    SOFTMAX,
    VERSION,
    Recording,
    Wanted,
    of_one,
    plain,
)

pytestmark = pytest.mark.deep
NO_TEXT = "the instructions of {} no text: "


def test_of_nvdisasm_of_the_cache_and_kept_are_the_same(recording: Recording) -> None:
    recording.real()
    cubin = recording.add()
    wanted: Wanted = {CRC: {*GEMMS, SOFTMAX}}
    first, warnings = recording.codes(wanted)
    assert not warnings
    assert {name for _, name in first} == wanted[CRC]
    softmax = first[CRC, SOFTMAX]
    assert len(softmax) == 3840 // 16
    assert softmax.files[0] == "samples/llm_kernels.cu"
    assert softmax.text[0].startswith("LDC R1, ") and softmax.line[0] > 0
    runs = recording.runs()
    assert plain(recording.codes(wanted)[0]) == plain(first)
    assert recording.store(wanted) == []
    assert recording.runs() == runs, "the cache knows it"
    shutil.rmtree(recording.folder.parent / "cache")
    cubin.unlink()
    recording.program("exit 1")
    again, warnings = recording.codes(wanted)
    assert plain(again) == plain(first)
    assert not warnings and not (recording.folder.parent / "cache").exists()


def test_instances_of_a_template_each_have_the_lines_they_have_alone(recording: Recording) -> None:
    recording.real()
    recording.add()
    together, _ = recording.codes({CRC: GEMMS})
    shutil.rmtree(recording.folder.parent / "cache")
    alone = [recording.codes({CRC: {name}})[0] for name in GEMMS]
    assert plain(together) == plain(alone[0] | alone[1])


def test_without_the_cache_nothing_is_kept(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    recording.add()
    recording.real()
    for number in (1, 2):
        wanted = of_one({CRC: {SOFTMAX}})
        codes, warnings = find_codes(recording.folder, wanted, silent, cache=False)
        assert (len(codes), warnings, recording.runs()) == (1, [], number)
    assert not (tmp_path / "none").exists()


def test_what_is_asked_for_later_is_added(recording: Recording) -> None:
    recording.real()
    cubin = recording.add()
    recording.store({CRC: {SOFTMAX}})
    runs = recording.runs()
    assert recording.store({CRC: {SOFTMAX, *GEMMS}}) == []
    assert recording.runs() > runs
    cubin.unlink()
    codes, warnings = recording.codes({CRC: {SOFTMAX, *GEMMS}})
    assert len(codes) == 3 and not warnings


def test_a_function_whose_first_line_is_in_doubt_is_asked_for_alone(recording: Recording) -> None:
    recording.add()
    line = '\t//## File "a.cu", line 7\n'
    both: list[str] = []
    for number, name in ((22, GEMM_32), (23, GEMM_16)):
        text = f".text.{name}:\n{{}}        /*0000*/   EXIT ;\n"
        (recording.folder / str(number)).write_text(text.format(line))
        both.append(text.format("" if both else line))
    (recording.folder / "22,23").write_text("".join(both))
    (recording.folder / "23,22").write_text("".join(both))
    recording.program(f'{VERSION}cat "{recording.folder}/$4"\n')
    codes, warnings = recording.codes({CRC: GEMMS})
    assert not warnings
    assert [one.line.tolist() for one in codes.values()] == [[7], [7]]


def test_the_same_cubin_of_another_recording_is_known(recording: Recording) -> None:
    recording.real()
    recording.add(1)
    recording.add(2)
    codes, warnings = recording.codes({1: {SOFTMAX}, 2: {SOFTMAX}})
    assert codes.keys() == {(1, SOFTMAX), (2, SOFTMAX)} and not warnings
    assert recording.runs() == 1


@pytest.mark.parametrize("program", ["/none", "/etc/passwd"])
def test_without_nvdisasm(
    program: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.add()
    monkeypatch.setenv(nvdisasm.PATH_VARIABLE, program)
    advice = "nvdisasm is not here: pip install nvidia-cuda-nvdisasm"
    assert recording.codes({CRC: GEMMS}) == ({}, [NO_TEXT.format("2 functions have") + advice])
    assert recording.store({CRC: {SOFTMAX}}) == [NO_TEXT.format("1 function have") + advice]


def test_what_is_missing_is_told_apart(recording: Recording) -> None:
    recording.real()
    recording.add()
    (recording.cubins / f"{7:016x}.cubin").write_bytes(b"no cubin")
    wanted: Wanted = {0: {"a"}, 1: {"b", "c"}, CRC: {SOFTMAX, "d", "e", "f"}, 7: {"g"} | GEMMS}
    codes, warnings = recording.codes(wanted)
    assert codes.keys() == {(CRC, SOFTMAX)}
    assert len(warnings) == 4
    reasons = "\n".join(warnings)
    assert "3 functions have no text: they are not in the cubin" in reasons
    assert f"2 functions have no text: their cubins are not in {recording.cubins}" in reasons
    assert "1 function have no text, for other reasons" in reasons
