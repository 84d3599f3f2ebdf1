"""What was shown before: which paths are kept, for whom, and what spoils nothing."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from flame.options.recent import MOST, read_recent, recent_path, remember


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder, not there yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_nothing_is_known_at_first() -> None:
    assert read_recent() == []


def test_the_last_ones_come_first_each_view_once() -> None:
    a, b, c = Path("/a"), Path("/b"), Path("/c")
    for view in ([a], [b, c], [a, b], [b, c], [a]):
        remember(view)
    assert read_recent() == [(a,), (b, c), (a, b)]


def test_paths_are_absolute_and_links_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("elsewhere")
    remember([Path("link"), Path("x/../y")])
    assert read_recent() == [(tmp_path / "link", tmp_path / "y")]


def test_it_is_for_this_user_alone(state: Path) -> None:
    remember([Path("/a")])
    assert recent_path() == state / "flame" / "recent.json"
    assert stat.S_IMODE(recent_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(recent_path().parent.stat().st_mode) == 0o700


def test_nothing_but_paths_is_kept() -> None:
    remember([Path("/a"), Path("/b")])
    assert json.loads(recent_path().read_text()) == [["/a", "/b"]]


def test_so_many_are_kept() -> None:
    for number in range(MOST + 5):
        remember([Path(f"/{number}")])
    assert read_recent() == [(Path(f"/{number}"),) for number in range(MOST + 4, 4, -1)]


def test_no_view_and_one_of_very_many_traces_are_not_kept() -> None:
    remember([])
    remember([Path(f"/{number}") for number in range(257)])
    assert read_recent() == []


def test_odd_names_come_back() -> None:
    odd = (Path("/\x1b[2J"), Path("/two\nlines"), Path("/\udcff"), Path("/ü🚀"))
    remember(odd)
    assert read_recent() == [odd]


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[", b"[1]", b'["/a"]', b'[["/a", 1]]', b"\xff", b"[" * 100_000, b"null"],
)
def test_a_damaged_list_is_none_and_is_replaced(content: bytes) -> None:
    remember([Path("/a")])
    recent_path().write_bytes(content)
    assert read_recent() == []
    remember([Path("/b")])
    assert read_recent() == [(Path("/b"),)]


def test_a_pipe_in_its_place_is_not_waited_for() -> None:
    remember([Path("/a")])
    recent_path().unlink()
    os.mkfifo(recent_path())
    assert read_recent() == []


def test_where_nothing_can_be_kept_that_is_told_to_the_caller(state: Path) -> None:
    state.write_text("a file")
    with pytest.raises(OSError, match=r"."):
        remember([Path("/a")])
    assert read_recent() == []
