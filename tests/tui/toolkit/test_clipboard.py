"""Copying: OSC 52 as far as terminals take it, tmux besides, and nothing that a paste would run."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App

from flame.tui.toolkit.clipboard import LIMIT, copied, visible
from tests.tui.dialog_stage import Player, stage
from tests.tui.traces import HOSTILE


@pytest.fixture(autouse=True)
def no_tmux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)


def sent(app: App[None], text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """(the note, what reaches the terminal) of copying ``text``."""
    written: list[str] = []
    assert app._driver is not None
    monkeypatch.setattr(app._driver, "write", written.append)
    return copied(app, text), "".join(written)


async def test_the_text_goes_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as user:
        note, bytes_ = sent(user.app, "void f<int>(π)", monkeypatch)
        assert note == "copied void f<int>(π)"
        found = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", bytes_)
        assert found
        assert base64.b64decode(found[1]).decode() == "void f<int>(π)"


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_can_be_copied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as user:
        note, bytes_ = sent(user.app, name, monkeypatch)
        assert note.isprintable() and len(note) < 100
        assert len(bytes_) <= 100_000
        assert bytes_[8:-1].isprintable()


async def test_a_long_name_is_copied_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as user:
        _, bytes_ = sent(user.app, "x" * LIMIT, monkeypatch)
        assert len(bytes_) == 100_000


async def test_what_terminals_would_drop_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as user:
        note, bytes_ = sent(user.app, "x" * (LIMIT + 1), monkeypatch)
        assert note == "not copied: 74,995 bytes, terminals take 74,994"
        assert not bytes_


@given(st.text(st.characters(codec=None)))
def test_nothing_that_is_copied_has_an_effect(text: str) -> None:
    safe = visible(text)
    assert safe.replace("\u200c", "").replace("\u200d", "").isprintable()
    safe.encode()


@pytest.mark.parametrize("text", ["gemm", "f(α, β)", "👩‍🚀 family", "a b", "e\u0301"])
def test_harmless_text_is_copied_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_control_characters_become_visible() -> None:
    assert visible("rm -rf ~\n\x1b[2J") == "rm -rf ~␊␛[2J"


async def _copy_in_tmux(
    user: Player, folder: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Copy ``gemm`` where tmux is ``script``."""
    tmux = folder / "tmux"
    tmux.write_text(f"#!/bin/sh\n{script}\n")
    tmux.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    return copied(user.app, "gemm")


async def test_tmux_is_handed_the_text_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = tmp_path / "got"
    script = f'echo "$@" > {got}.part; cat >> {got}.part; mv {got}.part {got}'
    async with stage() as user:
        await _copy_in_tmux(user, tmp_path, script, monkeypatch)
        await user.until(got.exists)
        assert got.read_text() == "load-buffer -w -\ngemm"


async def test_a_tmux_that_fails_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = tmp_path / "done"
    async with stage() as user:
        note = await _copy_in_tmux(user, tmp_path, f"touch {done}; exit 1", monkeypatch)
        await user.until(done.exists)
        assert note == "copied gemm"
