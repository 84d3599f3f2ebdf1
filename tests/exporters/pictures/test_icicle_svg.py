"""The icicle as SVG: as wide as the tree, each frame below its parent, and the rest counted."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given

from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.tree import StackTree
from flame.core.options import LoadOptions
from flame.core.projection.project import project
from flame.exporters.pictures import icicle_svg as icicle
from flame.exporters.pictures.icicle_svg import icicle_svg
from tests.conftest import TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples


def tree_of(path: Path, text: str) -> StackTree:
    path.write_text(text, errors="surrogateescape")
    return project(load(path))


def boxes(text: str) -> list[tuple[str, float, float, int]]:
    """Frames in order: the first line of the tooltip, left edge and width in percent, row."""
    drawn = re.sub(r"^<p.*</p>\n", "", text, flags=re.M)
    root = ElementTree.fromstring(drawn)
    found = []
    for one in root:
        title = one.findtext("title") or ""
        x, width = (float(one.attrib[key].removesuffix("%")) for key in ("x", "width"))
        found.append((title.partition("\n")[0], x, width, int(one.attrib["y"]) // 18))
    return found


def expected(tree: StackTree) -> list[tuple[str, float, float, int]]:
    """By hand: each frame right of its parent's own value and of the siblings before it."""
    whole = tree.total[0]
    found = []

    def draw(node: int, left: int, depth: int) -> None:
        total = int(tree.total[node])
        found.append((tree.name(node), 100 * left / whole, 100 * total / whole, depth))
        left += int(tree.own[node])
        for child in tree.children(node):
            draw(child, left, depth + 1)
            left += int(tree.total[child])

    draw(0, 0, 0)
    return found


def check(tree: StackTree) -> None:
    drawn, wanted = boxes(icicle_svg(tree)), expected(tree)
    wanted = [box for box in wanted if box[2] >= 0.05 and box[3] < icicle.LIMITS.deepest]
    assert len(drawn) == len(wanted)
    for (name, x, width, row), (other, *place, depth) in zip(drawn, wanted, strict=True):
        assert (name, row) == (other, depth)
        assert [x, width] == pytest.approx(place, abs=1e-4)


@pytest.mark.deep
@examples(2, [HealthCheck.too_slow])
@given(scripts())
def test_frames_are_as_wide_as_in_the_tree(trace_file: Path, script: Script) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    try:
        tree = project(profile)
    except NoMatchError:
        return
    if tree.total[0]:
        check(tree)


def test_small_frames_are_left_out_and_counted(tmp_path: Path) -> None:
    tree = tree_of(tmp_path / "x.folded", "a;big 999800\na;small 100\nb 100\n")
    text = icicle_svg(tree)
    assert [box[0] for box in boxes(text)] == ["all", "a", "big"]
    assert "2 frames are left out: less than 0.05 % of all" in text
    whole = icicle_svg(tree_of(tmp_path / "y.folded", "a;big 9\nb 1\n"))
    assert "left out" not in whole


def test_a_picture_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = ";".join(f"f{number}" for number in range(300))
    text = icicle_svg(tree_of(tmp_path / "x.folded", f"{deep} 5\n"))
    assert len(boxes(text)) == icicle.LIMITS.deepest
    assert "181 frames are left out" in text
    monkeypatch.setattr(icicle, "LIMITS", icicle.LIMITS._replace(most=3))
    tree = tree_of(tmp_path / "y.folded", "a;x 10\na;y 3\nb;z 9\n")
    assert [box[0] for box in boxes(icicle_svg(tree))] == ["all", "a", "x"]


def test_names_make_no_elements(tmp_path: Path) -> None:
    names = ("<script>alert(1)</script>", "\u202e\x1b\"'&amp", "x" * 100_000)
    tree = tree_of(tmp_path / "x.folded", "".join(f"{name} 5\n" for name in names))
    text = icicle_svg(tree)
    assert "<script" not in text and "\x1b" not in text and "\u202e" not in text
    text.encode("utf-8")
    assert len(text) < 10_000
    told = {box[0] for box in boxes(text)}
    assert told >= {"<script>alert(1)</script>", "\\u202e\\x1b\"'&amp"}
    assert max(map(len, told)) == 400
    elements = ElementTree.fromstring(re.sub("<p.*?</p>\n", "", text)).iter()
    assert {element.tag for element in elements} == {"svg", "title", "rect", "text"}


def test_nothing_is_said_in_a_sentence(tmp_path: Path) -> None:
    text = icicle_svg(tree_of(tmp_path / "x.folded", "a 0\n"))
    assert text == "<p>nothing to draw: samples is zero</p>\n"


@needs_traces
def test_a_real_trace_is_drawn_as_it_is() -> None:
    check(project(load(TRACES / "nsys" / "a100_llm_nvtx.sqlite")))
