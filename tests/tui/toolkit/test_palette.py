from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import combinations, product

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style

from flame.core.model.calls import CallClass
from flame.core.model.frames import ACTIVITY_KINDS, TRANSFER_PART, WAITING_PART, Frame, Kind
from flame.core.names.kernel_category import CATEGORIES, COPY, OTHER
from flame.tui.toolkit.ansi_palette import NoColours, SixteenColours
from flame.tui.toolkit.colours import (
    CALLS,
    CATEGORY_HUES,
    HUES,
    ON_DARK,
    ON_LIGHT,
    RGB,
    SHADES,
    STRONG,
    WAITS,
    WARM,
    colour,
    look_of,
    mix,
    shade_of,
)
from flame.tui.toolkit.palette import Palette

DARK = Palette((18, 18, 18), (228, 228, 228))
LIGHT = Palette((250, 250, 250), (28, 28, 28))
STRONGEST = Palette((0, 0, 0), (255, 255, 255), strong=True)
PALETTES = {"dark": DARK, "light": LIGHT, "contrast": STRONGEST}
in_all_themes = pytest.mark.parametrize("palette", PALETTES.values(), ids=PALETTES)

# What terminals mean by the sixteen names, dark ones first: VGA, xterm, Tango (GNOME).
TERMINALS = {
    "vga": "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa"
    " 555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff",
    "xterm": "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5"
    " 7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff",
    "tango": "2e3436 cc0000 4e9a06 c4a000 3465a4 75507b 06989a d3d7cf"
    " 555753 ef2929 8ae234 fce94f 729fcf ad7fa8 34e2e2 eeeeec",
}

# Machado, Oliveira, Fernandes (2009), full dichromacy, on linear RGB.
DEFICIENCIES = {
    "protan": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deutan": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritan": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
TOLD_APART = (
    Kind.PYTHON,
    Kind.NATIVE,
    Kind.LAUNCH,
    Kind.NVTX,
    Kind.KERNEL,
    Kind.MEMCPY,
    Kind.GRAPH,
)


def linear(value: int) -> float:
    part = value / 255
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def luminance(rgb: RGB) -> float:
    red, green, blue = map(linear, rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: RGB, other: RGB) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def colours(style: Style) -> tuple[RGB, RGB]:
    return rgb(style.color), rgb(style.bgcolor)


def rgb(color: Color | None) -> RGB:
    assert color and color.triplet
    return color.triplet.red, color.triplet.green, color.triplet.blue


def lab(rgb: tuple[float, float, float]) -> tuple[float, float, float]:
    """CIE L*a*b* of linear RGB."""
    red, green, blue = (max(part, 0.0) for part in rgb)
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(rgb: RGB, kind: str) -> tuple[float, float, float]:
    light = tuple(map(linear, rgb))
    red, green, blue = (
        sum(a * b for a, b in zip(row, light, strict=True)) for row in DEFICIENCIES[kind]
    )
    return lab((red, green, blue))


def names() -> list[str]:
    """One name for each shade in each hue."""
    wanted = product(range(SHADES), range(len(WARM)))
    return [next(n for n in map(str, range(1000)) if shade_and_hue(n) == one) for one in wanted]


def shade_and_hue(name: str) -> tuple[int, int]:
    return shade_of(name), look_of(Frame(Kind.FRAME, name), name, False)[1]


def drawn(palette: Palette, kind: Kind, name: str, faded: bool = False) -> Style:
    return palette.frame(Frame(kind, name), name, faded)


@in_all_themes
@pytest.mark.parametrize("kind", list(Kind))
def test_names_are_readable_on_every_colour(palette: Palette, kind: Kind) -> None:
    for name in names():
        assert contrast(*colours(drawn(palette, kind, name))) >= (7 if palette.strong else 4.5)
        assert contrast(*colours(drawn(palette, kind, name, faded=True))) >= 4.5
    assert contrast(*colours(palette.kind(kind))) >= 4.5


@in_all_themes
@pytest.mark.parametrize("faded", [False, True])
def test_counts_of_narrow_frames_are_quiet_but_readable(palette: Palette, faded: bool) -> None:
    for cover in (0.0, 0.5, 1.0):
        assert 3 <= contrast(*colours(palette.run(cover, False, faded))) < 7


@in_all_themes
@pytest.mark.parametrize("kind", list(Kind))
def test_names_stay_readable_in_256_colours(palette: Palette, kind: Kind) -> None:
    for name in names():
        ink, paper = (nearest_of_256(one) for one in colours(drawn(palette, kind, name)))
        assert contrast(ink, paper) >= 4.5


def nearest_of_256(one: RGB) -> RGB:
    found = Color.from_rgb(*one).downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
    return found.red, found.green, found.blue


@in_all_themes
@pytest.mark.parametrize("kind", list(Kind))
def test_bars_stand_out_from_the_background(palette: Palette, kind: Kind) -> None:
    for style in (palette.ink(kind), palette.match_ink):
        assert style.bgcolor is None
        assert contrast(rgb(style.color), palette.background) >= 3


@in_all_themes
@pytest.mark.parametrize("one", list(CallClass))
def test_api_calls_are_readable_and_stand_out(palette: Palette, one: CallClass) -> None:
    for name in names():
        found = colours(palette.call(one, name))
        assert contrast(*found) >= (7 if palette.strong else 4.5)
        assert contrast(*map(nearest_of_256, found)) >= 4.5
        assert contrast(*colours(palette.call(one, name, faded=True))) >= 4.5
    ink = palette.call_ink(one)
    assert ink.bgcolor is None and contrast(rgb(ink.color), palette.background) >= 3


@pytest.mark.parametrize("deficiency", list(DEFICIENCIES))
def test_calls_that_wait_differ_from_others_for_colour_blind_eyes(deficiency: str) -> None:
    wait = seen(CALLS[CallClass.SYNC], deficiency)
    for one in set(CallClass) - {CallClass.SYNC}:
        pair = zip(wait, seen(CALLS[one], deficiency), strict=True)
        assert sum((a - b) ** 2 for a, b in pair) ** 0.5 > 12, one


def test_sixteen_colours_and_none_tell_calls_apart_as_far_as_they_can() -> None:
    papers = {SixteenColours().call(one, "x").bgcolor for one in CallClass}
    inks = {SixteenColours().call_ink(one).color for one in CallClass}
    assert len(papers) == len(inks) == len(CallClass)
    for style in (NoColours().call(CallClass.SYNC, "x"), NoColours().call_ink(CallClass.SYNC)):
        assert style.color is None and style.bgcolor is None


@in_all_themes
def test_quiet_text_is_readable(palette: Palette) -> None:
    found = contrast(rgb(palette.quiet.color), palette.background)
    assert 4.5 <= found < contrast(palette.foreground, palette.background)


@in_all_themes
def test_blocks_stand_out_from_a_marked_stretch(palette: Palette) -> None:
    paper = rgb(palette.tint.bgcolor)
    assert contrast(paper, palette.background) >= 1.3
    for style in (palette.match_ink, palette.ink(Kind.KERNEL), palette.ink(Kind.NVTX)):
        assert contrast(rgb(style.color), paper) >= 2


@in_all_themes
def test_cursor_and_matches_stand_out_from_all_frames(palette: Palette) -> None:
    for style in (palette.cursor, palette.match):
        assert contrast(*colours(style)) >= 7
        assert style.bold
    papers = {colours(drawn(palette, kind, str(n)))[1] for kind in Kind for n in range(40)}
    assert colours(palette.cursor)[1] not in papers
    assert colours(palette.match)[1] not in papers


@pytest.mark.parametrize("deficiency", list(DEFICIENCIES))
def test_the_usual_levels_differ_for_colour_blind_eyes(deficiency: str) -> None:
    for one, other in combinations(TOLD_APART, 2):
        pair = zip(seen(HUES[one], deficiency), seen(HUES[other], deficiency), strict=True)
        distance = sum((a - b) ** 2 for a, b in pair) ** 0.5
        assert distance > 12, (one, other, distance)


@in_all_themes
def test_waiting_and_transfer_are_told_apart_and_readable(palette: Palette) -> None:
    for part in (WAITING_PART, TRANSFER_PART):
        style = palette.frame(part, part.name)
        assert contrast(*colours(style)) >= (7 if palette.strong else 4.5)
    for deficiency in DEFICIENCIES:
        pair = zip(*(seen(one, deficiency) for one in WAITS), strict=True)
        assert sum((a - b) ** 2 for a, b in pair) ** 0.5 > 12


# Categories of kernels

GEMM, SILU = Frame(Kind.KERNEL, "ampere_sgemm_128x64_tn"), Frame(Kind.KERNEL, "silu_and_mul_kernel")


@pytest.mark.parametrize("deficiency", list(DEFICIENCIES))
def test_categories_differ_for_colour_blind_eyes(deficiency: str) -> None:
    for one, other in combinations(CATEGORIES, 2):
        hues = (seen(CATEGORY_HUES[name], deficiency) for name in (one, other))
        distance = sum((a - b) ** 2 for a, b in zip(*hues, strict=True)) ** 0.5
        assert distance > 12, (one, other, distance)


@in_all_themes
@pytest.mark.parametrize("category", CATEGORIES)
def test_categories_are_readable(palette: Palette, category: str) -> None:
    frame = Frame(Kind.CATEGORY, category)
    for name in names():
        assert contrast(*colours(palette.frame(frame, name))) >= (7 if palette.strong else 4.5)
    assert contrast(*colours(palette.category(category))) >= 4.5
    assert contrast(rgb(palette.category_ink(category).color), palette.background) >= 3


BY_CATEGORY = [*(replace(one, by_category=True) for one in PALETTES.values()), SixteenColours(True)]


@pytest.mark.parametrize(
    ("usual", "palette"),
    list(zip([*PALETTES.values(), SixteenColours()], BY_CATEGORY, strict=True)),
)
def test_kernels_have_the_colour_of_their_category_where_asked_for(
    usual: Palette, palette: Palette
) -> None:
    by_level = [usual.frame(frame, "x").bgcolor for frame in (GEMM, SILU)]
    assert by_level[0] == by_level[1]
    assert palette.frame(GEMM, "x").bgcolor != palette.frame(SILU, "x").bgcolor
    for kind, category in ((Kind.MEMCPY, COPY), (Kind.MEMSET, COPY), (Kind.GRAPH, OTHER)):
        own = palette.frame(Frame(Kind.CATEGORY, category), "x")
        assert palette.frame(Frame(kind, "x"), "x") == own
    for kind in {*Kind} - {*ACTIVITY_KINDS}:
        assert drawn(palette, kind, "x") == drawn(usual, kind, "x")


def test_sixteen_colours_tell_categories_apart() -> None:
    palette = SixteenColours(by_category=True)
    papers = [palette.category(category).bgcolor for category in CATEGORIES]
    inks = [palette.category_ink(category).color for category in CATEGORIES]
    assert len(set(papers)) == len(set(inks)) == len(CATEGORIES)
    assert NoColours(True).category(COPY).bgcolor is None


def rgb_of(color: Color | None, terminal: str) -> RGB:
    assert color and color.number is not None and color.number < 16
    red, green, blue = bytes.fromhex(TERMINALS[terminal].split()[color.number])
    return red, green, blue


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("kind", list(Kind))
def test_names_are_readable_in_sixteen_colours(terminal: str, kind: Kind) -> None:
    palette = SixteenColours()
    for style in (*(drawn(palette, kind, name) for name in names()), palette.match):
        assert contrast(rgb_of(style.color, terminal), rgb_of(style.bgcolor, terminal)) >= 3


def test_sixteen_colours_tell_levels_cursor_matches_and_the_rest_apart() -> None:
    palette = SixteenColours()
    papers = {kind: {drawn(palette, kind, n).bgcolor for n in names()} for kind in TOLD_APART}
    for one, other in combinations(TOLD_APART, 2):
        assert not papers[one] & papers[other]
    assert all(len(papers[kind]) > 1 for kind in TOLD_APART if kind != Kind.MEMCPY)
    styles = [
        drawn(palette, kind, n, faded=faded)
        for kind in Kind
        for n in names()
        for faded in (False, True)
    ]
    for own in (palette.cursor, palette.match):
        assert own not in styles
    assert palette.cursor.reverse and not palette.cursor.color
    assert all(drawn(palette, kind, "x", faded=True).bgcolor is None for kind in Kind)


def test_without_colours_no_style_has_any_and_all_roles_differ() -> None:
    palette = NoColours()
    roles = {
        "frame": drawn(palette, Kind.KERNEL, "x"),
        "faded": drawn(palette, Kind.KERNEL, "x", faded=True),
        "match": palette.match,
        "cursor": palette.cursor,
        "run": palette.run(0.5, matching=False, faded=False),
        "matching run": palette.run(0.5, matching=True, faded=False),
    }
    assert len(set(map(str, roles.values()))) == len(roles)
    others = (palette.quiet, palette.kind(Kind.NVTX), palette.ink(Kind.NVTX), palette.match_ink)
    assert palette.tint != Style()
    for style in (*roles.values(), *others, palette.tint):
        assert style.color is None and style.bgcolor is None


def test_palettes_of_different_themes_differ() -> None:
    palettes = [*PALETTES.values(), SixteenColours(), NoColours()]
    assert len(set(palettes)) == len(palettes)
    assert SixteenColours() == SixteenColours()


def test_every_kind_has_its_own_hue() -> None:
    assert set(HUES) == set(Kind)
    assert len(set(HUES.values())) == len(HUES)


def test_a_name_has_the_same_shade_in_every_run() -> None:
    load = "from flame.tui.toolkit.colours import shade_of"
    code = f"{load}; print([shade_of(str(n)) for n in range(50)])"
    command = [sys.executable, "-c", code]
    runs = {
        subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{[shade_of(str(n)) for n in range(50)]}\n".encode()}


def test_shades_are_used_evenly_and_any_name_has_one() -> None:
    shades = [shade_of(f"kernel_{n}") for n in range(1000)]
    assert all(150 < shades.count(shade) < 250 for shade in range(SHADES))
    assert shade_of("\ud800") in range(SHADES)


@in_all_themes
def test_frames_of_no_known_kind_are_of_many_colours(palette: Palette) -> None:
    papers = [colours(drawn(palette, Kind.FRAME, f"function_{n}"))[1] for n in range(500)]
    assert len(set(papers)) == SHADES * len(WARM)
    assert max(map(papers.count, papers)) < 40
    assert len({colours(drawn(palette, Kind.NVTX, str(n)))[1] for n in range(500)}) == SHADES
    sixteen = {drawn(SixteenColours(), Kind.FRAME, str(n)).bgcolor for n in range(50)}
    assert len(sixteen) == 4


def test_runs_are_quieter_than_frames() -> None:
    for palette in PALETTES.values():
        _, empty = colours(palette.run(0.5, matching=False, faded=False))
        _, full = colours(palette.run(1.0, matching=False, faded=False))
        _, faded = colours(palette.run(1.0, matching=False, faded=True))
        _, match = colours(palette.run(1.0, matching=True, faded=True))
        backgrounds = [contrast(paper, palette.background) for paper in (faded, empty, full)]
        assert backgrounds == sorted(backgrounds)
        assert match not in (empty, full, faded)


def test_mix_and_colour_stay_in_range() -> None:
    assert mix((0, 0, 0), (255, 255, 255), 0.5) == (128, 128, 128)
    for kind in Kind:
        for shade, shades in product(range(SHADES), (ON_DARK, ON_LIGHT, STRONG)):
            assert all(0 <= part <= 255 for part in colour(kind, shade, shades))
