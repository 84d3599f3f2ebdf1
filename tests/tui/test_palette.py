from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest
from rich.style import Style

from flame.core.frames import Kind
from flame.tui.palette import HUES, RGB, SHADES, Palette, colour, mix, shade_of

DARK = Palette((18, 18, 18), (224, 224, 224))
LIGHT = Palette((250, 250, 250), (30, 30, 30))

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
    assert style.color and style.color.triplet and style.bgcolor and style.bgcolor.triplet
    ink, paper = style.color.triplet, style.bgcolor.triplet
    return (ink.red, ink.green, ink.blue), (paper.red, paper.green, paper.blue)


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


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("kind", list(Kind))
def test_names_are_readable_on_every_colour(palette: Palette, kind: Kind) -> None:
    for shade in range(len(SHADES)):
        name = next(str(n) for n in range(1000) if shade_of(str(n)) == shade)
        assert contrast(*colours(palette.frame(kind, name))) >= 4.5
        assert contrast(*colours(palette.frame(kind, name, faded=True))) >= 2.5


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])
def test_cursor_and_matches_stand_out_from_all_frames(palette: Palette) -> None:
    for style in (palette.cursor, palette.match):
        assert contrast(*colours(style)) >= 7
        assert style.bold
    papers = {colours(palette.frame(kind, str(n)))[1] for kind in Kind for n in range(40)}
    assert colours(palette.cursor)[1] not in papers
    assert colours(palette.match)[1] not in papers


@pytest.mark.parametrize("deficiency", list(DEFICIENCIES))
def test_the_usual_levels_differ_for_colour_blind_eyes(deficiency: str) -> None:
    for one, other in combinations(TOLD_APART, 2):
        pair = zip(seen(HUES[one], deficiency), seen(HUES[other], deficiency), strict=True)
        distance = sum((a - b) ** 2 for a, b in pair) ** 0.5
        assert distance > 12, (one, other, distance)


def test_every_kind_has_its_own_hue() -> None:
    assert set(HUES) == set(Kind)
    assert len(set(HUES.values())) == len(HUES)


def test_a_name_has_the_same_shade_in_every_run() -> None:
    code = "from flame.tui.palette import shade_of; print([shade_of(str(n)) for n in range(50)])"
    command = [sys.executable, "-c", code]
    runs = {
        subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{[shade_of(str(n)) for n in range(50)]}\n".encode()}


def test_shades_are_used_evenly_and_any_name_has_one() -> None:
    shades = [shade_of(f"kernel_{n}") for n in range(1000)]
    assert all(150 < shades.count(shade) < 250 for shade in range(len(SHADES)))
    assert shade_of("\ud800") in range(len(SHADES))


def test_runs_are_quieter_than_frames() -> None:
    for palette in (DARK, LIGHT):
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
        for shade in range(len(SHADES)):
            assert all(0 <= part <= 255 for part in colour(kind, shade))
