"""Source pages of Nsight Compute, as CSV."""

from __future__ import annotations

from tests.fuzz.checks import opens_or_refuses, unpacked_size, write
from tests.fuzz.mutations import mutate_lines
from tests.fuzz.target import Target
from tests.support.writers.ncufile import Line, Row, cuda_page, sass_page


def check(data: bytes) -> None:
    opens_or_refuses(write("source.csv", data))


def seeds() -> list[bytes]:
    rows = [Row("MOV R1, c[0x0]", {"stall_wait": 3}), Row("EXIT", {"stall_branching": 1})]
    sass = sass_page("gemm", rows)
    names = ("stall_branching", "stall_wait")
    lines = [Line(7, "a = b;", [(0, rows[0])]), Line(8, "}", [(1, rows[1])])]
    page = cuda_page("gemm", "/src/a.cu", lines, names)
    return [sass.encode(), page.encode(), (sass + sass).encode()]


TARGET = Target("ncu_page", seeds, check, mutate_lines, 1 << 13, unpacked_size)
