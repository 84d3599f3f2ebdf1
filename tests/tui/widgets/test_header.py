from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.model.tree import TreeLayout
from flame.core.projection.filters import Time
from flame.core.projection.labels import Naming
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.tui.session.query import Query
from flame.tui.session.tree_view import TreeView
from flame.tui.shell.commands import COMMANDS, footer_of
from flame.tui.shell.view_commands import TABLE, TIMELINE
from flame.tui.toolkit.lines import Line, line_width
from flame.tui.toolkit.palette import Palette
from flame.tui.widgets import header
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.nsysfile import NsysFile
from tests.tui import traces
from tests.tui.trees import node, stack_tree

PALETTE = Palette((18, 18, 18), (224, 224, 224))
WIDTHS = (60, 80, 100, 120, 200, 250)

TREE = stack_tree(
    {
        ("generate", "model.layers.18", "mlp.experts", "gemm"): 900,
        ("generate", "model.layers.18", "attention"): 90,
        ("other", "gemm"): 10,
    }
)

SHORT = Selection(naming=Naming("short"))


def text(line: Line) -> str:
    return "".join(piece.text for piece in line)


def at(*names: str, zoom: tuple[str, ...] = (), width: int = 100) -> TreeView:
    view = TreeView(TREE, width)
    view.zoom_to(view.viewport.zoom_of(node(TREE, *zoom)))
    view.cursor.select(node(TREE, *names))
    return view


def test_the_header_names_file_gpus_how_busy_they_were_metric_levels_and_coverage(
    decode: Path,
) -> None:
    profile = load(decode)
    line = text(header.header("decode.sqlite", profile, SHORT, project_tree(profile), PALETTE, 140))
    assert line.startswith(" flame  decode.sqlite · H100 · 820 µs · busy 55.4 % · idle 366 µs ")
    assert line.rstrip().endswith(
        "GPU time ▾   launch › nvtx › kernel   coverage 93 % launch 93 % NVTX"
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_the_header_fits_and_keeps_file_busy_share_and_metric(decode: Path, width: int) -> None:
    profile = load(decode)
    line = header.header(
        "decode.sqlite", profile, Selection(), project_tree(profile), PALETTE, width
    )
    assert line_width(line) <= width
    assert "decode.sqlite · " in text(line) and "busy 55.4 %" in text(line)
    assert "GPU time ▾" in text(line)


def test_a_long_name_of_the_file_is_cut_before_the_busy_share(decode: Path) -> None:
    profile = load(decode)
    line = header.header(
        f"{'x' * 50}.sqlite", profile, Selection(), project_tree(profile), PALETTE, 60
    )
    assert "…" in text(line) and " · busy 55.4 % " in text(line)


def test_the_header_follows_a_time_filter(decode: Path) -> None:
    profile = load(decode)
    chosen = Selection(where=(Time(profile.begin, profile.begin + 200_000),))
    line = header.header("x", profile, chosen, project(profile, chosen), PALETTE, 140)
    assert " · 200 µs · busy " in text(line)


def test_the_header_tells_gpus_apart_where_there_is_room(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "x.sqlite") as file:
        for device, length in ((0, 100), (1, 400), (2, 400)):
            file.gpu(device, "NVIDIA A100-SXM4-80GB")
            file.kernel("gemm", 0, length, device=device)
            file.kernel("gemm", 900, 1_000, device=device)
    profile = load(tmp_path / "x.sqlite")
    tree = project_tree(profile)
    wide, narrow = (
        text(header.header("x", profile, Selection(), tree, PALETTE, width)) for width in (180, 80)
    )
    assert " · 3×A100 · 1.00 µs · busy GPU0 20.0 %, GPU1 50.0 %, GPU2 50.0 % · idle " in wide
    assert " · 3×A100 · 1.00 µs · busy 20.0–50.0 % " in narrow


@pytest.mark.parametrize("width", [60, 140])
def test_the_header_says_what_is_other_than_usual(decode: Path, width: int) -> None:
    layout = TreeLayout(inverted=True, order="name")
    profile, turned = load(decode), Selection(naming=Naming("short"), layout=layout)
    line = header.header("decode.sqlite", profile, turned, project(profile, turned), PALETTE, width)
    assert "inverted  by name  GPU time" in text(line)
    assert line_width(line) <= width


def test_the_header_says_which_names_and_colours_are_other_than_usual(decode: Path) -> None:
    profile, turned = load(decode), Selection(naming=Naming("demangled"), colours="category")
    line = header.header("decode.sqlite", profile, turned, project(profile, turned), PALETTE, 140)
    assert "demangled names  by category  GPU time" in text(line)


def test_the_header_says_when_nothing_ran_on_a_gpu(tmp_path: Path) -> None:
    path = traces.host_only(tmp_path / "host.sqlite")
    profile = load(path)
    line = text(header.header(path.name, profile, Selection(), project_tree(profile), PALETTE, 120))
    assert "nothing ran on a GPU" in line
    assert "host self time" in line
    assert "coverage" not in line


def test_good_coverage_is_not_worth_a_word(tmp_path: Path) -> None:
    assert header.coverage_gap(load(traces.deep(tmp_path / "deep.sqlite"))) == ""


def test_the_breadcrumb_leads_to_the_selected_frame() -> None:
    way = ("generate", "model.layers.18", "mlp.experts")
    line = header.breadcrumb(at(*way, zoom=("generate",)), 120)
    assert text(line) == " all ▸ generate ▸ model.layers.18 ▸ mlp.experts"
    tones = {piece.text: piece.tone for piece in line}
    assert (tones["generate"], tones["mlp.experts"]) == ("strong", "dim")
    assert [piece.action for piece in line if piece.text == "model.layers.18"] == [
        f"screen.zoom_to({node(TREE, *way[:2])})"
    ]


def test_a_long_breadcrumb_keeps_its_ends() -> None:
    way = ("generate", "model.layers.18", "mlp.experts", "gemm")
    assert text(header.breadcrumb(at(*way), 40)) == " all ▸ … ▸ mlp.experts ▸ gemm"


def test_the_breadcrumb_fits_however_long_the_names() -> None:
    tree = stack_tree({tuple("x" * n for n in range(1, 90)): 1})
    for width in WIDTHS:
        view = TreeView(tree, width)
        for selected in (0, 1, 2, 30, len(tree) - 1):
            view.cursor.select(selected)
            assert line_width(header.breadcrumb(view, width)) <= width


def test_a_zoomed_run_shows_in_the_breadcrumb() -> None:
    tree = stack_tree({("big",): 10_000, ("p",): 50, **{("p", f"tiny {n}"): 1 for n in range(100)}})
    view = TreeView(tree, 200)
    view.cursor.select(node(tree, "p", "tiny 5"))
    view.zoom_in()
    assert text(header.breadcrumb(view, 80)) == " all ▸ p ▸ a part of it ▸ tiny 5"


def test_the_status_says_what_is_selected() -> None:
    line = header.search_status(at("other"), 80)
    assert text(line) == " other  10 ns · 1.0 % of all · 1×"


def test_the_status_says_what_a_search_found() -> None:
    view = at("generate")
    view.search(Query("gemm|generate"))
    assert text(header.search_status(view, 100)) == (
        " 3 frames · 1.00 µs · 100.0 % of all · match 1 of 3"
    )
    view.search(Query("nowhere"))
    assert text(header.search_status(view, 100)) == " no frame matches"


def test_matches_outside_the_zoomed_part_are_not_lost() -> None:
    view = at("other", zoom=("other",))
    view.search(Query("attention"))
    assert text(header.search_status(view, 100)).endswith(" · none in the zoomed part")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_footer_fits_and_always_ends_with_help_and_quit(width: int) -> None:
    line = header.footer(footer_of(COMMANDS, "icicle"), width)
    assert line_width(line) <= width
    assert text(line).startswith(" tab view  enter zoom ")
    assert text(line).endswith(" ? help  q quit ")


def test_no_key_is_bound_twice_but_in_a_view_of_its_own_which_comes_first() -> None:
    own = (*TABLE, *TIMELINE)
    keys = [key for one in COMMANDS if one not in own for key in one.keys.split(",") if key]
    assert len(keys) == len(set(keys))
    for command in own:
        assert next(one for one in COMMANDS if command.keys in one.keys.split(",")) is command
