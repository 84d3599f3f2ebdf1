"""Keys for the names of kernels, and for their categories as colours and as a level."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.style import Style

from flame.core.names.kernel_category import CATEGORIES, ELEMENTWISE, MATRIX
from flame.core.projection.filters import ShowStacks
from flame.options.command_line import options_of
from flame.options.selection import parse
from flame.tui.toolkit.lines import Lines, RowView, palette_of
from flame.tui.views.icicle import Icicle
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import User, open_app

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel(int)>(int)"
GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_tn_align4>(Params)"
SHORT = {
    "cutlass_80_tensorop_s1688gemm_128x64_tn_align4",
    "vectorized_elementwise<CUDAFunctor_add>",
    "vectorized_elementwise<silu>",
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three kernels of two base names, one after the other."""
    path = tmp_path / "kernels.sqlite"
    with NsysFile(path) as file:
        file.gpu(0, "NVIDIA H100 80GB HBM3", pid=100)
        for at, full in enumerate((GEMM, ADD, FILL)):
            base = full.partition("<")[0].rpartition("::")[2]
            file.api("cudaLaunchKernel_v7000", 100 * at, 100 * at + 50, at + 1)
            begin = 1000 + 1000 * at
            file.kernel(base, begin, begin + 900 - 100 * at, at + 1, demangled=full)
    return path


def kernels(user: User) -> set[str]:
    """The names that the kernels on screen have."""
    tree = user.screen.view.tree
    return {tree.name(node) for node in range(len(tree)) if tree.kind(node).title == "kernel"}


async def test_shift_k_turns_the_names_of_kernels_and_z_takes_it_back(trace: Path) -> None:
    async with open_app(trace) as user:
        assert kernels(user) == SHORT
        assert "names" not in user.read("header")
        await user.press("K")
        assert kernels(user) == {"Kernel2", "vectorized_elementwise_kernel"}
        assert "base names" in user.read("header")
        await user.press("K")
        assert kernels(user) == {GEMM, ADD, FILL}
        await user.press("K")
        assert kernels(user) == SHORT
        await user.press("z", "z")
        assert kernels(user) == {"Kernel2", "vectorized_elementwise_kernel"}


async def test_shift_o_colours_by_category_and_z_takes_it_back(trace: Path) -> None:
    async with open_app(trace) as user:
        tree = user.screen.view.tree
        assert len(_papers(user)) == 1
        await user.press("O")
        assert len(_papers(user)) == 2
        assert "by category" in user.read("header")
        assert user.screen.view.tree is tree, "nothing is worked out anew"
        await user.press("z")
        assert len(_papers(user)) == 1


def _papers(user: User) -> set[str]:
    """The colours that kernels have in the icicle, whatever their shade."""
    view, found = user.screen.view, set()
    palette = palette_of(user.screen.query_one(Icicle))
    for node in range(len(view.tree)):
        frame = view.tree.frames[int(view.tree.frame[node])]
        if frame.kind.title == "kernel":
            style: Style = palette.frame(frame, "same name")
            found.add(str(style.bgcolor))
    return found


async def test_every_view_has_the_colours_at_once(trace: Path) -> None:
    async with open_app(trace) as user:
        await user.press("tab", "tab", "tab")
        views = list(user.screen.query(RowView))
        assert views and not any(view.look.palette.by_category for view in views)
        await user.press("O")
        assert all(view.look.palette.by_category for view in views)
        await user.press("shift+tab", "O")
        assert not any(view.look.palette.by_category for view in views)


async def test_shift_t_switches_the_level_of_categories(trace: Path) -> None:
    async with open_app(trace) as user:
        await user.press("T")
        assert user.levels.endswith("category,kernel")
        assert {MATRIX, ELEMENTWISE} <= set(user.screen.view.tree.text)
        assert MATRIX in user.read("icicle")


async def test_patterns_of_base_names_go_on_to_match(trace: Path) -> None:
    async with open_app(trace) as user:
        await user.press("slash", *"elementwise_kernel", "enter")
        found = user.screen.view.matches.result
        assert found is not None and found.matches.nodes == 2


async def test_a_filter_by_the_name_shown_is_of_that_kernel_alone(trace: Path) -> None:
    async with open_app(trace) as user:
        await user.press("end", "A")
        (filter_,) = user.screen.wanted.where
        assert isinstance(filter_, ShowStacks)
        assert kernels(user) == {"cutlass_80_tensorop_s1688gemm_128x64_tn_align4"}


async def test_names_and_colours_are_said_by_the_command_line(trace: Path) -> None:
    async with open_app(trace) as user:
        await user.press("K", "O")
        session, selection = user.screen.session, user.screen.shown.selection
        words = options_of(session.options, selection)
        assert words == ["--kernel-names", "base", "--colours", "category"]
        assert parse(words) == (replace(session.options, forward=True), selection)


async def test_the_help_has_a_legend_of_categories(trace: Path) -> None:
    async with open_app(trace) as user:
        await user.press("question_mark")
        page = user.app.screen.query_one(Lines)
        lines = page._source(120, 0)
        text = " ".join(piece.text for row in range(len(lines)) for piece in lines[row])
        assert all(f" {category} " in text for category in CATEGORIES)


async def test_the_palette_has_both_commands(trace: Path) -> None:
    async with open_app(trace) as user:
        ids = {binding.id for binding in user.screen.BINDINGS}  # type: ignore[union-attr]
        assert {"flame.kernel_names", "flame.colours", "flame.level_category"} <= ids
