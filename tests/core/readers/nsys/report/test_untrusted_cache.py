"""Without a cache to be trusted reports are converted, and that is said."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.options import silent
from tests.core.readers.nsys.report.conversions import (
    COPY,
    Nsys,
    export_report,
    left_in_cache,
    open_to_others,
)


def link(cache: Path) -> None:
    cache.parent.mkdir()
    (cache.parent / "elsewhere").mkdir(0o700)
    cache.symlink_to("elsewhere")


def file(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("in the way")


def parent_of_all(cache: Path) -> None:
    cache.parent.mkdir()
    cache.parent.chmod(0o777)


UNTRUSTED = {
    "others may write to": open_to_others,
    "a link to one": link,
    "File exists": file,
    "everybody may write to": parent_of_all,
}


@pytest.mark.parametrize("reason", UNTRUSTED)
def test_without_a_cache_it_is_converted_and_said_once(
    reason: str, nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    UNTRUSTED[reason](folder / "cache" / "flame")
    profile = load(report)
    assert profile.gpu_time == 100
    assert profile.launches is not None and len(profile.launches) == 1
    [note] = [text for text in profile.warnings if "is not kept for the next time" in text]
    assert reason in note
    assert left_in_cache(folder) in ([], [""])
    assert list(Path(tempfile.gettempdir()).glob(".flame-*")) == []


def test_a_relative_cache_is_ignored(
    nsys: Nsys, report: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nsys(COPY)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(folder / "home"))
    assert export_report(report, silent).parent == folder / "home" / ".cache" / "flame"
