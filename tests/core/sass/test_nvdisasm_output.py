"""What nvdisasm prints, read: as text of our own, and against what it says as JSON."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from flame.core.sass import nvdisasm
from flame.core.sass.nvdisasm_output import CodeSection, parse_sections
from tests.support.paths import SAMPLES

CUBIN = SAMPLES / "llm_kernels.cubin"
PRINTED = """
\t.target\tsm_90

//--------------------- .text.first    --------------------------
\t.section\t.text.first,"ax",@progbits
        .size           first,(.L_x_9 - first)
first:
.text.first:
\t//## File "/src/a b.cu", line 14
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
.L_x_7:
.L_x_3:
\t//## File "/src/inner.h", line 3 inlined at "/src/a b.cu", line 20
        /*0020*/              @!P1 BRA `(.L_x_8) ;
        /*0030*/                   CALL.REL.NOINC `($first$_Z4cosff) ;
        /*0040*/                   BRX R2 -0x50 (*"BRANCH_TARGETS .L_x_3,.L_x_8"*) ;
.L_x_8:
        /*0050*/                   BRA `(.L_x_8);
        /*0060*/                   NOP;
.L_x_9:

//--------------------- .text._Z6secondv          --------------------------
\t.section\t.text._Z6secondv,"ax",@progbits
.text._Z6secondv:
        /*0000*/                   DEPBAR.LE SB0, 0x0, {4,3} ;
\t//## File "/src/a b.cu", line 30
        /*0010*/                   MOV R0, 32@lo((_Z6secondv + .L_x_1@srel)) ;
"""
FILE, INNER = "/src/a b.cu", "/src/inner.h"


def read(text: str) -> dict[str, CodeSection]:
    return parse_sections(text.splitlines())


def test_instructions_with_their_lines_and_targets() -> None:
    assert read(PRINTED)[".text.first"].rows == [
        (0x00, "LDC R1, c[0x0][0x28]", FILE, 14),
        (0x10, "@P0 EXIT", FILE, 14),
        (0x20, "@!P1 BRA 0x50", INNER, 3),
        (0x30, "CALL.REL.NOINC $first$_Z4cosff", INNER, 3),
        (0x40, 'BRX R2 -0x50 (*"BRANCH_TARGETS 0x20,0x50"*)', INNER, 3),
        (0x50, "BRA 0x50", INNER, 3),
        (0x60, "NOP", INNER, 3),
    ]


def test_a_line_of_one_section_is_none_of_the_next() -> None:
    second = read(PRINTED)[".text._Z6secondv"]
    assert second.rows == [
        (0x00, "DEPBAR.LE SB0, 0x0, {4,3}", "", 0),
        (0x10, "MOV R0, 32@lo((_Z6secondv + .L_x_1@srel))", FILE, 30),
    ]
    assert second.in_doubt
    assert not read(PRINTED)[".text.first"].in_doubt
    assert not read(PRINTED.replace("//##", "//"))[".text._Z6secondv"].in_doubt


def test_code_of_a_part_of_a_section() -> None:
    section = read(PRINTED)[".text.first"]
    whole = section.function_code("first", 0, 1 << 62)
    assert whole.offset.tolist() == list(range(0, 0x70, 0x10))
    assert whole.files == (FILE, INNER)
    assert whole.file.tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert whole.line.tolist() == [14, 14, 3, 3, 3, 3, 3]
    part = section.function_code("cos", 0x30, 0x50)
    assert part.offset.tolist() == [0, 0x10]
    assert part.files == (INNER,)
    assert part.instruction(0) == "+0x0000 CALL.REL.NOINC $first$_Z4cosff"


def test_what_is_no_listing_has_no_sections() -> None:
    assert read("nvdisasm error : no\n\n  /*zz*/ x\n\0\x1b[31m") == {}


@pytest.fixture
def tool() -> nvdisasm.Disassembler:
    found = nvdisasm.find_disassembler()
    if found is None:
        pytest.skip("nvdisasm is not here")
    return found


def bare(text: str) -> str:
    """Without blanks, and commas: of these JSON has one more in a RET."""
    return re.sub(r"[\s,]", "", text)


def as_json(tool: nvdisasm.Disassembler) -> dict[str, list[str]]:
    """The instructions of each function as nvdisasm says them in JSON, see `bare`."""
    said = subprocess.run([tool.path, "-json", "-c", CUBIN], check=True, capture_output=True)
    functions: list[dict[str, Any]] = json.loads(said.stdout)[1]
    parts = ("predicate", "opcode", "operands")
    return {
        one["function-name"]: [
            bare("".join(row.get(part, "") for part in parts)) for row in one["sass-instructions"]
        ]
        for one in functions
    }


@pytest.mark.deep
def test_it_reads_as_the_json_of_the_same(tool: nvdisasm.Disassembler) -> None:
    said = subprocess.run([tool.path, "-g", "-c", CUBIN], check=True, capture_output=True)
    sections = read(said.stdout.decode())
    expected = as_json(tool)
    assert len(expected) == 4
    for name, instructions in expected.items():
        rows = sections[f".text.{name}"].rows
        assert [row[0] for row in rows] == list(range(0, 16 * len(rows), 16))
        assert [bare(row[1]) for row in rows] == instructions
