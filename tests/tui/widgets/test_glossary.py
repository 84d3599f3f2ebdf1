"""Every word that the screens can show is explained in the help, and none that they cannot."""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import Path

import pytest

from flame.core.analysis.words.formats import (
    NVTX,
    OPERATORS,
    RANGES,
    SCOPES,
    Terms,
    kind_word,
    level_word,
)
from flame.core.model.calls import IdleCause
from flame.core.model.frames import Frame, Kind
from flame.core.model.metrics import ALL_METRICS
from flame.core.model.tree import ORDERS, TreeLayout
from flame.core.projection.filter_kinds import FILTER_KINDS
from flame.core.projection.labels import Naming
from flame.core.projection.levels import LEVELS
from flame.core.projection.selection import Selection
from flame.tui.details.labels import Label
from flame.tui.ranks.top_table import RANK_HEADS
from flame.tui.session.glossary import GLOSSARY, WORDS, meaning_of, words_of
from flame.tui.timeline.gap_lines import GapLabel
from flame.tui.timeline.rows import _WORDS as LANES
from flame.tui.views.busy_line import _LABEL as BUSY
from flame.tui.views.top_columns import TopColumns
from flame.tui.widgets.chips import _FOLDED as FOLDED
from flame.tui.widgets.header import modes
from tests.support.paths import ROOT

ALL_TERMS = (NVTX, OPERATORS, SCOPES, RANGES)
ENTRIES = [entry for _, entries in GLOSSARY for entry in entries]
CAPITAL = {"CUDA", "PC", "Python", "C++", "NVTX", "95", "99"}
NAMES = ("base", "demangled", "mangled")


def modes_of() -> set[str]:
    """Every word by which the header can say that the picture is not the usual one."""
    layouts = [TreeLayout(inverted=True, collapsed=True, order=order) for order in ORDERS]
    namings = [Naming(names, fold=True) for names in NAMES]
    selections = [
        Selection(layout=layout, naming=naming, colours="category")
        for layout in layouts
        for naming in namings
    ]
    selections += [Selection(colours=one) for one in ("imbalance", "efficiency")]
    usual = "weight", "name"
    lines = [modes(one, order, True) for one in selections for order in usual]  # type: ignore[arg-type]
    return {piece.text.strip() for line in lines for piece in line} - {""}


def heads() -> set[str]:
    """The columns of the table, those of parts without the names of the parts."""
    several = TopColumns(by="GPU", parts=("GPU 0", "GPU 1")).heads
    return {
        head.title for head in (*TopColumns(sized=True, rated=True, measured=True).heads, *several)
    } - {"", "GPU 0", "GPU 1"}


def kinds(terms: Terms) -> set[str]:
    """What badges, rows of the table and levels are called."""
    words = {kind_word(Frame(kind, ""), terms) for kind in Kind}
    return words | {level_word(level, terms) for level in LEVELS}


SHOWN = {
    "details": {*map(str, Label)},
    "metrics": {metric.title for metric in ALL_METRICS},
    "causes": {cause.title for cause in IdleCause},
    "table": heads(),
    "table of ranks": {head.title for head in RANK_HEADS},
    "header": modes_of(),
    "chips": {kind.word for kind in FILTER_KINDS} | {FOLDED},
    "timeline": {*map(str, GapLabel)} | set(chain(*(text.split(", ") for text in LANES.values()))),
    "busy line": {BUSY.strip()},
    **{f"kinds of {terms.kind}": kinds(terms) for terms in ALL_TERMS},
}
"""What can stand on the screen, from the tables that the screens are drawn by."""


@pytest.mark.parametrize("where", SHOWN)
def test_every_word_is_explained(where: str) -> None:
    assert SHOWN[where]
    assert sorted(word for word in SHOWN[where] if not meaning_of(word)) == []


def test_the_header_has_all_its_words_here() -> None:
    assert {"by start", "by weight", "mangled names", "forward", "inverted"} <= SHOWN["header"]


def test_details_write_labels_and_titles_by_their_names_alone() -> None:
    """What a label is goes through `Label`: no text of its own stands in its place."""
    folder = ROOT / "flame" / "tui" / "details"
    for path in folder.glob("*.py"):
        if path.name == "labels.py":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "flame.tui.toolkit.fields":
                assert {alias.name for alias in node.names} == {"LABEL"}, path
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Piece":
                assert not is_plain_title(node), f"{path.name}:{node.lineno}"


def is_plain_title(call: ast.Call) -> bool:
    """Whether ``call`` draws a quiet text that has words, and no value in it."""
    tones = [node.value for node in call.args[1:2] if isinstance(node, ast.Constant)]
    texts = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
    words = re.findall(r"[a-z]{3,}", " ".join(text for text in texts if isinstance(text, str)))
    return tones == ["dim"] and bool(words) and words != ["more"]


def test_no_word_is_explained_twice_or_at_length() -> None:
    words = [entry.word for entry in ENTRIES]
    assert len(set(words)) == len(words)
    for word, meaning in ENTRIES:
        assert meaning[0].islower() or meaning.split()[0] in CAPITAL, word
        assert not meaning.endswith(".") and len(meaning) <= 62, word


@pytest.mark.deep
def test_no_word_is_explained_that_stands_nowhere() -> None:
    shown = set().union(*SHOWN.values())
    sources = (path for path in (ROOT / "flame").rglob("*.py") if path.name != "glossary.py")
    texts = " ".join(text for path in sources for text in texts_of(path))
    stale = {entry.word for entry in ENTRIES} - shown
    assert sorted(word for word in stale if word not in texts) == []


def texts_of(path: Path) -> list[str]:
    """All constant texts of a module but its docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    nodes = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [text for text in nodes if isinstance(text, str)]


@pytest.mark.parametrize("terms", ALL_TERMS, ids=lambda terms: terms.kind)
def test_each_trace_has_its_own_word_for_ranges_and_no_other(terms: Terms) -> None:
    told = {entry.word: entry.meaning for _, entries in words_of(terms) for entry in entries}
    assert {"nvtx", "operator", "scope", "range"} & set(told) == {terms.kind}
    assert ("NVTX" in told) == (terms is NVTX)
    if terms in (OPERATORS, SCOPES):
        plain = {word: meaning for word, meaning in told.items() if word != terms.kind}
        spoken = " ".join(plain.values())
        assert not re.search(r"\branges?\b|\bnvtx\b", spoken)
        assert terms.kind in told["nested"]
        assert "a operator" not in spoken
    assert len(told) >= len(ENTRIES) - 5
    assert all(title.startswith(f"{WORDS}: ") for title, _ in words_of(terms))
