"""Where the encoding is not UTF-8, everything drawn is ASCII and stays in its columns."""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from rich.style import Style
from textual.color import Color

import flame.tui
from flame.options.config import Config
from flame.tui.toolkit.ascii import Ascii, in_ascii, is_needed
from flame.tui.toolkit.text import printable
from tests.support.tiers import deep_except
from tests.tui import traces
from tests.tui.conftest import open_app
from tests.tui.terminals import Terminal, read_screen, start

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@given(st.text())
def test_any_text_keeps_its_width(text: str) -> None:
    shown = printable(text)
    assert in_ascii(shown).isascii()
    assert len(in_ascii(shown)) == cell_len(shown)


def test_ascii_stays_as_it_is() -> None:
    text = "".join(map(chr, range(32, 127)))
    assert in_ascii(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("▏mlp 12 µs · 3×", "|mlp 12 us - 3x"),
        ("…layers.18 ▸ mlp › a", "~layers.18 > mlp > a"),
        ("naïve café", "naive cafe"),
        ("核函数", "??????"),
        ("╭─┬─╮│", "+-+-+|"),
        ("▁▂▃▄▅▆▇█", "_.:=+*##"),
        ("━━┈┈", "==..".replace("=", "-")),
        ("ж", "?"),
    ],
)
def test_signs(text: str, expected: str) -> None:
    assert in_ascii(text) == expected


def test_blocks_that_differ_in_height_stay_in_order() -> None:
    assert len(set(in_ascii("▁▂▃▄▅▆▇"))) == 7
    assert in_ascii("━") != in_ascii("┈"), "a progress bar still has an end"


def glyphs_in(source: Path) -> Iterator[str]:
    """Characters beyond ASCII in the strings, but for docstrings, of a module."""
    tree = ast.parse(source.read_text("utf-8"))
    documentation = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in documentation:
            yield from (char for char in str(node.value) if not char.isascii())


def test_every_glyph_that_the_app_draws_has_a_sign_of_its_own() -> None:
    folder = Path(flame.tui.__file__).parent
    modules = [path for path in folder.rglob("*.py") if path.name not in ("ascii.py", "text.py")]
    glyphs = {glyph for path in modules for glyph in glyphs_in(path)}
    assert {"▏", "…", "▸"} <= glyphs
    drawn = {glyph for glyph in glyphs if cell_len(glyph)}
    assert {glyph for glyph in drawn if "?" in in_ascii(glyph)} == set()


def test_the_filter_leaves_styles_and_controls() -> None:
    style = Style(bold=True)
    control = Segment("", None, [(ControlType.BELL,)])
    assert Ascii().apply([Segment("▏a", style), control], Color(0, 0, 0)) == [
        Segment("|a", style),
        control,
    ]


# When


def encoded(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(sys, "__stderr__", io.TextIOWrapper(io.BytesIO(), encoding))


@pytest.mark.parametrize(
    ("encoding", "needed"),
    [("utf-8", False), ("UTF8", False), ("ascii", True), ("latin-1", True), ("gb18030", True)],
)
def test_the_locale_decides(monkeypatch: pytest.MonkeyPatch, encoding: str, needed: bool) -> None:
    encoded(monkeypatch, encoding)
    assert is_needed(wanted=False) is needed
    assert is_needed(wanted=True)


def test_the_environment_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded(monkeypatch, "ascii")
    monkeypatch.setenv("FLAME_ASCII", "0")
    assert not is_needed(wanted=True)
    encoded(monkeypatch, "utf-8")
    monkeypatch.setenv("FLAME_ASCII", "1")
    assert is_needed(wanted=False)


def test_a_browser_shows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded(monkeypatch, "ascii")
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    assert not is_needed(wanted=False)


# In the app


@pytest.mark.deep
async def test_the_configuration_makes_all_of_the_screen_ascii(decode: Path) -> None:
    async with open_app(decode, config=Config(ascii=True)) as user:
        for key in ("down", "question_mark", "q", "L", "escape", *["tab"] * 4):
            await user.press(key)
            for strip in user.app.screen._compositor.render_strips():
                text = "".join(segment.text for segment in strip)
                assert text.isascii()
                assert len(text) == 120


ENVIRONMENTS = [C_LOCALE, {"PYTHONIOENCODING": "latin-1"}, {"FLAME_ASCII": "1"}]


@pytest.mark.parametrize("environment", deep_except([], ENVIRONMENTS), ids=str)
def test_only_ascii_arrives_at_the_terminal(
    terminals: list[Terminal], tmp_path: Path, environment: dict[str, str]
) -> None:
    trace = traces.hostile(tmp_path / "hostile.sqlite")
    terminal = start(terminals, trace, **environment)
    terminal.read_until("owned")
    terminal.settle()
    output = terminal.output
    for key in ("j", "j", "/", "µ→核", "\r", "\x1b", "?", "q", "\t", "j"):
        terminal.press(key)
        terminal.settle(0.15)
        output += terminal.output
    assert output.isascii()
    assert "|" in read_screen(output) and "\\u" not in read_screen(output)
