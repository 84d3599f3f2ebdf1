"""Two traces compared in a real terminal, key by key: what changed, where, and why."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.tui.diff.test_diff_app import BASE, NEW, written
from tests.tui.test_first_minute import FLAME, Tmux, ended
from tests.tui.test_first_minute import pytestmark as pytestmark
from tests.tui.test_first_minute import tmux as tmux


@pytest.mark.deep
def test_what_changed_where_and_why(tmux: Tmux, tmp_path: Path) -> None:
    written(tmp_path / "before.sqlite", BASE)
    written(tmp_path / "after.sqlite", NEW)
    tmux.line(f"{FLAME} diff before.sqlite after.sqlite --levels nvtx,kernel")
    tmux.until(r"BASE 53.0 ms → NEW 71.0 ms   \+18.0 ms  \+34.0 %", "▏▲ attention", r"▏\+ gelu")

    tmux.search("gemm")
    tmux.press("Enter")
    tmux.until(r"40.0 ms → 56.0 ms · \+40.0 % · \+16.0 ms · match 1 of 2")
    tmux.press("Escape")
    tmux.until_gone("2 frames · ")
    tmux.press("Tab", "Tab")
    screen = tmux.until(r"Δ▾", r"–\s+7.00 ms\s+\+7.00 ms")
    assert re.search(r"5.00 ms\s+–\s+−5.00 ms\s+gone", screen)
    tmux.search("^gemm$")
    tmux.press("Enter")
    tmux.until("1 of 6 match")
    tmux.press("x")
    tmux.until(r"gemm  40.0 ms → 56.0 ms", r"▲ attention  \+80.0 %", "at all places")

    tmux.press("Tab", "Tab")
    tmux.until("timeline of NEW ▾")
    tmux.press("D")
    tmux.until("timeline of BASE ▾")
    tmux.press("z", "BTab", "p")
    tmux.until("per second ▾")
    tmux.press("C")
    tmux.until("copied the command line of this view")
    tmux.press("q")
    ended(tmux)


@pytest.mark.deep
def test_why_it_changed_is_exported_and_guarded(tmux: Tmux, tmp_path: Path) -> None:
    """From the picture to a gate: why, in the details; both columns; exit codes by a kept base."""
    written(tmp_path / "before.sqlite", BASE)
    written(tmp_path / "after.sqlite", NEW)
    tmux.line(f"{FLAME} diff before.sqlite after.sqlite --levels nvtx,kernel")
    tmux.until("▏▲ attention")
    tmux.press("Down", "Down")
    tmux.until(r"(?m)^ gemm", r"by count +\+10.0 ms", r"by duration \+6.00 ms", "20.0 ms → 36.0 ms")
    tmux.press("q")
    ended(tmux)

    tmux.line("clear")
    tmux.line(f"{FLAME} diff before.sqlite after.sqlite --levels nvtx,kernel -f folded")
    tmux.until("attention;gemm 20000000 36000000", "mlp;relu 5000000 0", "mlp;gelu 0 7000000")
    tmux.line("clear")
    tmux.line(f"{FLAME} diff before.sqlite --keep-base main.flame-base.json.gz")
    tmux.until(r"wrote main.flame-base.json.gz")
    gate = f"{FLAME} diff main.flame-base.json.gz after.sqlite --section summary --fail-on"
    for condition, code in (
        ('frame("attention").total > +50%', 5),
        ('new("gelu") > 0', 5),
        ('frame("mlp").total > +50%', 0),
        ('frame("attention").p99 > +5%', 6),
    ):
        tmux.line("clear")
        tmux.line(f"{gate} {shlex.quote(condition)}; echo left with $?")
        tmux.until(rf"(?m)^left with {code}$", '"flame_diff": 1')


@pytest.mark.deep
def test_without_colours_signs_say_it(tmux: Tmux, tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text("main;same 500\nmain;old 300\nmain;more 200\n")
    (tmp_path / "b.folded").write_text("main;same 500\nmain;new 100\nmain;more 400\n")
    tmux.line(f"NO_COLOR=1 FLAME_ASCII=1 {FLAME} diff a.folded b.folded")
    tmux.until(r"\|\^ more  \+100.0 %  \+200", r"\|- old  gone 300", r"\|\+ new", r"\|same  500")
    tmux.press("q")
    ended(tmux)


@pytest.mark.deep
def test_what_cannot_be_compared_is_said_in_one_line(tmux: Tmux, tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text("main;same 500\n")
    tmux.line(f"{FLAME} diff a.folded none.folded")
    tmux.until("none.folded: no such file")
    tmux.press("q")
    ended(tmux, "3")
