"""The picture of a comparison: every frame of both sides, as wide as asked, coloured by change."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.sides import Run, Sides
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.reporting.diff_svg import diff_svg

SVG = "{http://www.w3.org/2000/svg}"
BASE = "main;<old> 30\nmain;same 100\nmain;grew 50\n"
NEW = "main;new 20\nmain;same 100\nmain;grew 80\n"


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    for name, text in (("a", BASE), ("b", NEW)):
        (tmp_path / f"{name}.folded").write_text(text)
    base, new = (Run(load(tmp_path / f"{name}.folded"), name) for name in ("a", "b"))
    return compare(Sides((base,), (new,)))


def boxes(text: str) -> dict[str, tuple[float, str]]:
    """The width in percent and the colour of each frame, by its name."""
    root = ElementTree.fromstring(text)
    found = {}
    for one in root.iter(f"{SVG}svg"):
        title = one.find(f"{SVG}title")
        if title is not None and title.text:
            width = float(one.attrib["width"].removesuffix("%"))
            found[title.text.partition("\n")[0]] = width, one.attrib["fill"]
    return found


def test_every_frame_is_as_wide_as_its_wider_side(comparison: Comparison) -> None:
    found = boxes(diff_svg(comparison))
    whole = 30 + 20 + 100 + 80
    assert {name: round(width * whole / 100) for name, (width, _) in found.items()} == {
        "all": whole,
        "main": whole,
        "<old>": 30,
        "new": 20,
        "same": 100,
        "grew": 80,
    }
    assert found["same"][1] == "#dddde2"
    assert len({found[name][1] for name in ("same", "grew", "<old>", "new")}) == 4


@pytest.mark.parametrize(("width", "missing"), [("new", "<old>"), ("base", "new")])
def test_what_one_side_has_not_has_no_width_there(
    comparison: Comparison, width: str, missing: str
) -> None:
    assert missing not in boxes(diff_svg(comparison, width))  # type: ignore[arg-type]


def test_of_nothing_there_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text("main 1\n")
    (tmp_path / "b.folded").write_text("main 0\n")
    sides = [Run(load(tmp_path / f"{name}.folded"), name) for name in ("a", "b")]
    with pytest.raises(NoMatchError, match="nothing to draw"):
        diff_svg(compare(Sides((sides[0],), (sides[1],))), "new")
