"""A stand-in for the ``nsys`` program that a test holds up, and that ends who called it."""

from __future__ import annotations

import os
from pathlib import Path

from flame.core.readers.signs.nsys import MAGIC
from tests.support.writers.nsysfile import NsysFile

_PROGRAM = """\
#!/bin/sh
for word do
    case $word in
        --output=*) out=${word#--output=} ;;
    esac
done
case $word in
    *gated*) while [ ! -e "$FLAME_TEST_GATE" ]; do sleep 0.02; done ;;
    *ends_reader*) kill -9 $PPID ;;
    *ends_worker*) kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat) $PPID ;;
esac
cp "$word.sqlite" "$out"
"""


def gated_nsys(folder: Path) -> dict[str, str]:
    """Put such an ``nsys`` into ``folder``; the environment in which it is found.

    Of a report it makes what lies beside it. Of one called ``gated`` only when the file `gate`
    is there; ``ends_reader`` and ``ends_worker`` kill the process that reads it, and its parent.
    """
    program = folder / "bin" / "nsys"
    program.parent.mkdir()
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "FLAME_TEST_GATE": str(gate(folder)),
    }


def gate(folder: Path) -> Path:
    """The file that opens the gate."""
    return folder / "gate"


def rank_report(path: Path, rank: int) -> Path:
    """A report of a rank that only ``nsys`` can read."""
    path.write_bytes(MAGIC + path.name.encode())
    write_rank(path.with_name(f"{path.name}.sqlite"), rank)
    return path


def write_rank(path: Path, rank: int) -> Path:
    """A trace of a rank: what all ranks run, and a kernel of its own."""
    with NsysFile(path) as file:
        file.gpu(0, "NVIDIA Test")
        file.process(100, "trainer")
        for number, name in enumerate(("gemm", "softmax", f"own_{rank % 3}")):
            at = 1000 * number
            file.api("cudaLaunchKernel_v7000", at + 10, at + 20, corr=number)
            file.kernel(name, at + 30, at + 40 + 10 * rank, corr=number)
    return path
