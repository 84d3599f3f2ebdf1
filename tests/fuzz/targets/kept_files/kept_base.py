"""What `flame diff` has kept of a run to compare with: JSON, packed by gzip."""

from __future__ import annotations

import gzip
import random
import zlib
from contextlib import suppress

from flame.core.compare.comparison import compare
from flame.core.compare.keep import keep_run
from flame.core.compare.kept.base_file import encode_base, is_kept_base
from flame.core.compare.sections.diff_report import diff_sections
from flame.core.compare.sides import Run, Sides, open_runs
from flame.core.errors import InputError, NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.projection.selection import select
from tests.fuzz.checks import FoundError, packed, unpacked_size, write
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target
from tests.support.writers.nsysfile import NsysFile


def check(data: bytes) -> None:
    """It is refused in one line, or compared with itself."""
    path = write("x.flame-base.json.gz", data)
    is_kept_base(path)
    try:
        runs = open_runs(path, "BASE")
    except InputError as error:
        line = str(error)
        if line.splitlines() != [line] or not line.startswith(f"{path}: "):
            raise FoundError(f"refused in other words: {line!r}") from error
        return
    with suppress(UsageError, NoMatchError):
        diff_sections(compare(Sides(runs, runs)))


def seeds() -> list[bytes]:
    path = write("x.sqlite", b"")
    path.unlink()
    with NsysFile(path) as file:
        for step in range(4):
            at = 1_000 * step
            file.nvtx(f"step {step}", at, at + 900)
            file.api("cudaLaunchKernel_v7000", at + 10, at + 20, step + 1)
            file.kernel(f"gemm{step % 2}", at + 100, at + 300, step + 1)
    kept = keep_run(Run(load(path), "BASE"), select())
    path.unlink()
    return [encode_base([kept]), packed(b'{"flame_base":1,"version":"1","runs":[]}')]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Change values of the document."""
    try:
        return packed(mutate_json(gzip.decompress(data), draw))
    except (OSError, EOFError, zlib.error):
        return data


TARGET = Target("kept_base", seeds, check, mutate, 1 << 13, unpacked_size)
