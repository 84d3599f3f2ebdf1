"""A place in the app as text, and the file that holds one."""

from __future__ import annotations

from flame.options import state
from tests.fuzz.checks import FoundError, refusal_of, write
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target


def check(data: bytes) -> None:
    path = write("state.json", data)
    found: list[state.AppState] = []
    line = refusal_of(lambda: found.append(state.decode(str(path))))
    if line and str(path) not in line:
        raise FoundError(line)
    for one in found:
        text = state.encode(one)
        if state.decode(text) != one or not text.isascii() or not text.isprintable():
            raise FoundError(repr(text))


def seeds() -> list[bytes]:
    whole = state.AppState(
        options=["--levels", "nvtx,kernel"],
        view="top",
        zoom=["a", "b\n"],
        selected=["é"],
        search="gemm.*",
        exact=True,
        paths=["a.sqlite", "b.json"],
    )
    return [state.encode(whole).encode(), b'{"path":"a","view":"sandwich"}', b"[]"]


TARGET = Target("state", seeds, check, mutate_json, 1 << 11)
