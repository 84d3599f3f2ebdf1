"""Flame graphs as SVG, and pages: well-formed, as wide as the tree says, and loading nothing."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.exporters.pictures import html, svg
from tests.exporters.profiles import Row, profile_of, some_rows
from tests.support.paths import SAMPLES

SVG = "{http://www.w3.org/2000/svg}"
EVIL = ('</script><script>alert(1)</script>"]]>', "<img src=x onerror='alert(1)'>")


def picture(profile: Profile, title: str = "trace") -> tuple[ElementTree.Element, list[str]]:
    file = io.BytesIO()
    notes = svg.write(project(profile), file, title=title)
    return ElementTree.fromstring(file.getvalue()), notes


def boxes(root: ElementTree.Element) -> list[tuple[str, float, float, int]]:
    """Frames: the first line of the tooltip, left edge and width in percent, row."""
    [frames] = [one for one in root if one.get("class") == "frames"]
    found = []
    for one in frames:
        title = (one.findtext(f"{SVG}title") or "").partition("\n")[0]
        x, width = (float(one.attrib[key].removesuffix("%")) for key in ("x", "width"))
        found.append((title, x, width, int(one.attrib["y"])))
    return found


def test_frames_are_as_wide_as_what_they_weigh() -> None:
    root, notes = picture(profile_of([Row("gemm", 70, nvtx=("forward",)), Row("copy", 30)]))
    assert boxes(root) == [
        ("all", 0, 100, 0),
        ("[no launch recorded]", 0, 100, 18),
        ("forward", 0, 70, 36),
        ("gemm", 0, 70, 54),
        ("copy", 70, 30, 36),
    ]
    assert notes == []


def test_what_is_too_small_is_counted() -> None:
    rows = [Row("large", 10**9), *(Row(f"small {number}", 1) for number in range(5))]
    _, notes = picture(profile_of(rows))
    assert notes == [f"5 frames are left out of the picture: {svg.LIMITS.words}"]


def test_names_are_text_and_nothing_is_loaded() -> None:
    profile = profile_of([Row(name, 5) for name in EVIL])
    drawn, page = io.BytesIO(), io.BytesIO()
    svg.write(project(profile), drawn, title=EVIL[0])
    html.write(project(profile), profile, Selection(), page, name=EVIL[0])
    for file in (drawn, page):
        text = file.getvalue().decode()
        assert "<script>alert" not in text and "<img" not in text
        known = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml")
        assert set(re.findall(r"https?://[^\"' >)]*", text)) <= set(known)
        assert not re.search(
            r"\b(src|href|xlink)\s*=|@import|url\(", text.replace("&lt;img src", "")
        )


@given(some_rows)
def test_any_names_are_well_formed(rows: list[Row]) -> None:
    if any(row.duration for row in rows):
        root, _ = picture(profile_of(rows), "".join(row.kernel for row in rows))
        widths = [width for _, _, width, y in boxes(root) if y == 0]
        assert widths == [100]


def test_a_page_sums_up_draws_and_lists(tmp_path: Path) -> None:
    profile = load(SAMPLES / "decode_small.sqlite")
    file = io.BytesIO()
    html.write(project(profile), profile, Selection(), file, name="decode <small>")
    text = file.getvalue().decode()
    assert "<h1>decode &lt;small&gt;</h1>" in text
    assert "GPU time 371 ms · 14,988 activities" in text
    rows = re.findall(r"<tr><td[^>]*>([^<]*)</td><td>kernel</td>", text)
    assert rows[:2] == ["fused_moe_kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"]
    assert text.count("<svg xmlns") == 1


def test_a_page_of_stacks_without_a_gpu(tmp_path: Path) -> None:
    path = tmp_path / "x.folded"
    path.write_text("a;b 3\na 2\n")
    profile, file = load(path), io.BytesIO()
    html.write(project(profile), profile, Selection(), file, name="x")
    assert "<p>2 stacks</p>" in file.getvalue().decode()
