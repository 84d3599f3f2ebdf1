"""The library records what NCCL tells of its calls, and reading a dump finds it again."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from flame.core.model.launches import GROUP_END, GROUP_START, NcclCall
from flame.core.options import LoadOptions, silent
from flame.core.readers.fdump.reader import read_dump

HASH = 0xFEDCBA9876543210


def test_calls_of_nccl_are_recorded_with_what_they_tell(
    compiled: Callable[..., Path], injected_env: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    env = injected_env(tmp_path, fake=False)
    subprocess.run([compiled("nvtx_nccl.cpp")], env=env, check=True)
    (dump,) = tmp_path.glob("*.fdump")
    read = read_dump(dump, LoadOptions(), silent).nccl_builder
    assert read is not None
    found = read()
    calls = [found.calls[at] if at >= 0 else at for at in found.call.tolist()]
    assert calls == [
        NcclCall("ncclAllReduce", HASH, 4096, reduction="max"),
        GROUP_START,
        NcclCall("ncclSend", HASH, 64, peer=5),
        GROUP_END,
    ]
    assert (found.sizes, found.ranks, found.warnings) == ({HASH: 8}, {(0, HASH): 3}, ())
    assert (found.end > found.start).all()
