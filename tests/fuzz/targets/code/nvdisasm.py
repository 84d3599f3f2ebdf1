"""What a disassembler prints, or something else in its place."""

from __future__ import annotations

from flame.core.sass.nvdisasm_output import parse_sections
from tests.fuzz.checks import FoundError
from tests.fuzz.mutations import mutate_lines
from tests.fuzz.target import Target

_PRINTED = """\
	.section	.text.gemm,"ax",@progbits
.text.gemm:
	//## File "/src/gemm.cu", line 12
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/              @!P0 BRA `(.L_x_0) ;
	//## File "/src/gemm.cu", line 14 inlined at "/src/main.cu", line 3
        /*0020*/                   EXIT ;
.text.softmax:
        /*0000*/                   RET.REL.NODEC R2 `(gemm) ;
"""


def check(data: bytes) -> None:
    printed = data.decode("utf-8", "replace").split("\n")
    for name, section in parse_sections(printed).items():
        code = section.function_code(name, 0, 1 << 62)
        rows = len({row[0] for row in section.rows})
        if not rows == len(code.offset) == len(code.text):
            raise FoundError(f"{name}: {rows} rows, {len(code.text)} texts")


def seeds() -> list[bytes]:
    return [_PRINTED.encode(), b".text.a:\n.L_x_9:\n/*fff0*/ BRA `(.L_x_9)\n"]


TARGET = Target("nvdisasm", seeds, check, mutate_lines, 1 << 12)
