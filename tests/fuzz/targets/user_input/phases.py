"""Files that name phases (`--phases`): JSON, whose patterns may be regular expressions."""

from __future__ import annotations

from flame.core.names.phases import Phase, read_phases
from tests.fuzz.checks import FoundError, refusal_of, write
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target


def check(data: bytes) -> None:
    path = write("phases.json", data)
    found: list[Phase] = []
    line = refusal_of(lambda: found.extend(read_phases(str(path))))
    if line and not line.startswith(f"--phases {path}: "):
        raise FoundError(line)


def seeds() -> list[bytes]:
    return [
        b'{"prefill": ["prefill", "re:ctx_[0-9]+"], "decode": ["kernel:flash", "nvtx:step"]}',
        b'{"a": ["re:(x|y)*", "python:re:^main$"]}',
        b"[]",
    ]


TARGET = Target("phases", seeds, check, mutate_json, 1 << 11)
