"""Exported files: what is there already is replaced where it is named, and never otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flame.console import progress
from flame.core.loading.inputs import Inputs
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from tests.cli.conftest import Flame
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE

NAME = "run.collapsedstack.txt"
COMPLAINT = f"{NAME}: is there already; name the file to write with -o"


def test_an_existing_file_is_not_replaced_unless_it_is_named(flame: Flame, trace: Path) -> None:
    Path(NAME).write_text("old")
    refused = flame("export", trace, "-f", "folded")
    assert (refused.code, refused.complaint()) == (2, COMPLAINT)
    assert Path(NAME).read_text() == "old"
    assert flame("export", trace, "-f", "folded", "-o", NAME).code == 0
    assert Path(NAME).read_text() != "old"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_that_appears_during_the_load_is_not_replaced(
    kind: str, flame: Flame, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = progress.load_with_progress
    Path("elsewhere").write_text("old")

    def load_and_meet(inputs: Inputs, options: LoadOptions, *cache: None) -> Profile:
        profile = load(inputs, options, *cache)
        if kind == "file":
            Path(NAME).write_text("old")
        else:
            Path(NAME).symlink_to("elsewhere")
        return profile

    monkeypatch.setattr(progress, "load_with_progress", load_and_meet)
    refused = flame("export", trace, "-f", "folded")
    assert (refused.code, refused.complaint()) == (2, COMPLAINT)
    assert Path(NAME).read_text() == Path("elsewhere").read_text() == "old"
    assert not list(Path().glob(".flame-*"))


def test_of_two_exports_at_once_none_is_lost(trace: Path, folder: Path) -> None:
    """One of them writes, the other says what to do."""
    command = [sys.executable, "-m", "flame", "export", str(trace), "-f", "folded"]
    both = [
        subprocess.Popen(
            [*command, "--levels", level],
            stderr=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(ROOT)},
        )
        for level in ("kernel", "nvtx")
    ]
    said = [process.communicate(timeout=PATIENCE)[1] for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2]
    assert said[codes.index(2)] == f"flame: {COMPLAINT}\n"
    assert ("gemm" in Path(NAME).read_text()) == (codes[0] == 0)
