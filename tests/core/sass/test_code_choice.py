"""Text of functions that several cubins have: only what all of them say."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from flame.core.model.pc_samples import Code
from flame.core.options import silent
from flame.core.sass.code_choice import NOT_THERE, CodeChoice, FoundCode, agreed_code
from flame.core.sass.code_files import write_codes
from flame.core.sass.disassembly import find_codes, store_codes
from flame.core.sass.module_lives import MOST_ALIKE, CubinId
from flame.core.sass.nvdisasm import PATH_VARIABLE
from tests.support.generated.colliding_cubins import SOFTMAX, cubin_adding

Row = tuple[int, str, str, int]
A, B, C = (CubinId(7, content) for content in (1, 2, 3))


def code(*rows: Row, name: str = "f") -> Code:
    files = tuple(dict.fromkeys(file for _, _, file, _ in rows if file))
    return Code(
        name,
        np.array([row[0] for row in rows], np.int64),
        tuple(row[1] for row in rows),
        np.array([files.index(row[2]) if row[2] else -1 for row in rows], np.int32),
        np.array([row[3] for row in rows], np.int32),
        files,
    )


def rows_of(code: Code) -> list[Row]:
    files = (*code.files, "")
    lines = zip(code.text, code.file.tolist(), code.line.tolist(), strict=True)
    return [
        (offset, text, files[file], line)
        for offset, (text, file, line) in zip(code.offset.tolist(), lines, strict=True)
    ]


ONE = code((0, "NOP", "a.cu", 1), (16, "ADD 1", "a.cu", 2), (32, "EXIT", "", 0))
TWO = code((0, "NOP", "b.cu", 1), (16, "ADD 2", "a.cu", 2), (32, "EXIT", "", 0), (48, "NOP", "", 0))


def test_only_that_in_which_all_agree() -> None:
    differs = "[2 cubins differ]"
    assert rows_of(agreed_code([ONE, TWO])) == [
        (0, "NOP", "", 0),
        (16, differs, "a.cu", 2),
        (32, "EXIT", "", 0),
        (48, differs, "", 0),
    ]
    assert rows_of(agreed_code([ONE, ONE, ONE])) == rows_of(ONE)


def have(**codes: Code) -> FoundCode:
    return FoundCode(codes, {})


def lack(reason: str = NOT_THERE) -> FoundCode:
    return FoundCode({}, {"f": reason})


NO_TEXT = "the instructions of 1 function have no text: "
CASES = {
    "one": ({A: have(f=ONE)}, ONE, ""),
    "in one of them": ({A: lack(), B: have(f=TWO), C: lack()}, TWO, ""),
    "in none": ({A: lack(), B: lack()}, None, NO_TEXT + NOT_THERE),
    "one unknown": ({A: have(f=ONE), B: lack("gone"), C: lack()}, None, NO_TEXT + "gone"),
    "not recorded": ({}, None, NO_TEXT + "which cubin they are of was not recorded"),
    "in two of three": (
        {A: have(f=ONE), B: lack(), C: have(f=TWO)},
        agreed_code([ONE, TWO]),
        "2 cubins share CUPTI's checksum: the instructions of 1 function have text only where "
        "these cubins agree",
    ),
}


@pytest.mark.parametrize(("found", "expected", "said"), CASES.values(), ids=CASES)
def test_which_is_taken(found: dict[CubinId, FoundCode], expected: Code | None, said: str) -> None:
    choice = CodeChoice({tuple(found): {"f"}}, found)
    codes = [rows_of(code) for code in choice.codes.values()]
    assert codes == ([] if expected is None else [rows_of(expected)])
    assert list(choice.warnings()) == ([said] if said else [])


def test_more_than_are_looked_at() -> None:
    many = tuple(CubinId(7, content) for content in range(MOST_ALIKE + 1))
    choice = CodeChoice({many: {"f", "g"}}, {})
    [said] = choice.warnings()
    assert said.startswith("the instructions of 2 functions have no text: more than 64 cubins")


def test_different_numbers_are_told_together() -> None:
    found = {A: have(f=ONE), B: have(f=TWO), C: have(f=TWO)}
    choice = CodeChoice({(A, B): {"f"}, (A, B, C): {"f"}}, found)
    [said] = choice.warnings()
    assert said.startswith("2 to 3 cubins share CUPTI's checksum: the instructions of 2 functions")


# In a folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cubins").mkdir()
    return tmp_path


def put(folder: Path, cubin: CubinId, one: Code) -> None:
    opened = os.open(folder / "cubins", os.O_RDONLY)
    write_codes(opened, f"{cubin.stem}.sass", "13.0", {one.name: one})
    os.close(opened)


def test_codes_that_are_kept_are_chosen_from(folder: Path) -> None:
    for cubin, one in ((A, ONE), (B, TWO)):
        put(folder, cubin, one)
    wanted = {(A,): {"f"}, (A, B): {"f"}}
    codes, [said] = find_codes(folder, wanted, silent)
    assert rows_of(codes[(A,), "f"]) == rows_of(ONE)
    assert rows_of(codes[(A, B), "f"]) == rows_of(agreed_code([ONE, TWO]))
    assert "2 cubins share" in said
    assert store_codes(folder, wanted, silent) == [said]


def test_a_cubin_that_has_no_such_function_needs_no_nvdisasm(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, "/none")
    put(folder, A, ONE)
    (folder / "cubins" / f"{B.stem}.cubin").write_bytes(cubin_adding(1))
    codes, said = find_codes(folder, {(A, B): {"f"}}, silent)
    assert rows_of(codes[(A, B), "f"]) == rows_of(ONE) and not said
    put(folder, A, code((0, "NOP", "", 0), name=SOFTMAX))
    codes, [warning] = find_codes(folder, {(A, B): {SOFTMAX}}, silent)
    assert not codes and "nvdisasm is not here" in warning
