"""The compiled library is used where it is there, fits and is wanted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from csrc.build import BuildError, build, compiler
from flame.core.compiled import library
from tests.support.paths import ROOT

ASK = "from flame.core.compiled.library import compiled; print(compiled() is not None)"


def is_used(**environment: str) -> bool:
    """Whether a new process uses the library."""
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    return done.stdout == "True\n"


needs_library = pytest.mark.skipif(
    not library.LIBRARY.exists(), reason="the compiled library was not built"
)


@needs_library
@pytest.mark.parametrize(("value", "used"), [("0", True), ("", True), ("1", False), ("yes", False)])
def test_a_variable_leaves_it_out(value: str, used: bool) -> None:
    assert is_used(FLAME_NO_NATIVE=value) == used


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Has the library looked for again, without FLAME_NO_NATIVE."""
    monkeypatch.delenv("FLAME_NO_NATIVE", raising=False)
    monkeypatch.setattr(library, "_load", library._load.__wrapped__)
    return monkeypatch


@pytest.mark.parametrize("content", [None, b"", b"no library", b"\x7fELF" + bytes(100)])
def test_without_a_library_numpy_does_its_work(
    content: bytes | None, fresh: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "libflamecore.so"
    if content is not None:
        path.write_bytes(content)
    fresh.setattr(library, "LIBRARY", path)
    assert library.compiled() is None


@needs_library
def test_a_library_of_other_sources_is_left_alone(fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(library, "_ABI", library._ABI + 1)
    assert library.compiled() is None


def test_both_sides_name_the_same_version_and_functions() -> None:
    header = (ROOT / "csrc" / "flamecore.h").read_text("utf-8")
    found = re.search(r"#define FLAMECORE_ABI (\d+)", header)
    assert found is not None
    assert int(found[1]) == library._ABI
    declared = set(re.findall(r"^API .*?(flamecore_\w+)\(", header, re.M))
    assert declared == {"flamecore_abi", *library._FUNCTIONS}


def test_what_fails_to_compile_leaves_the_library_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = tmp_path / "libflamecore.so"
    target.write_bytes(b"old")
    try:
        compiler()
    except BuildError:
        pytest.skip("no C compiler")
    with pytest.raises(BuildError, match="failed"):
        build(target, ["-no-such-flag"])
    assert target.read_bytes() == b"old"
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match="no C compiler: no-such-compiler"):
        build(target)
    assert list(tmp_path.iterdir()) == [target]
