"""Arrangements by digit and by palette, and forward operators: shown, said, undone and copied."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from flame.core.analysis.words.formats import OPERATORS, reworded
from flame.core.options import LoadOptions
from flame.core.projection.filters import ShowStacks
from flame.core.projection.named_levels import ARRANGEMENT_KEYS, NAMED_LEVELS
from flame.core.projection.selection import Selection
from flame.options.command_line import options_of
from flame.options.selection import parse
from flame.tui.shell.actions import Action
from flame.tui.shell.command_palette import Commands
from samples import make_torch_sample
from tests.support.tiers import deep_except
from tests.tui.conftest import USUAL, User, open_app

LINKED = LoadOptions(forward=True)
BY_RANGE = Selection(("nvtx", "kernel"), naming=USUAL.naming)


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training step of PyTorch, with modules, a backward pass and links to forward operators."""
    path = tmp_path_factory.mktemp("torch") / make_torch_sample.NAME
    path.write_bytes(gzip.compress(make_torch_sample.text().encode(), 1))
    return path


def copied(user: User) -> list[str]:
    return options_of(user.screen.session.options, user.screen.shown.selection)


def top_level(user: User) -> set[str]:
    tree = user.screen.view.tree
    return {tree.name(node) for node in tree.children(0)}


@pytest.mark.parametrize("place", deep_except([0, 2, 7, 10], range(len(NAMED_LEVELS))))
async def test_every_arrangement_by_digit_and_back(torch: Path, place: int) -> None:
    named = NAMED_LEVELS[place]
    async with open_app(torch) as user:
        before = user.screen.shown.selection
        total = int(user.screen.view.tree.total[0])
        await user.press("L", ARRANGEMENT_KEYS[place])
        await user.rest()
        if named.needs and user.screen.shown.recorded.isdisjoint(named.needs):
            assert f"{named.name}: no PC samples" in user.read("hint")
            return
        shown = user.screen.shown
        assert shown.selection.levels == named.levels
        assert shown.selection.naming.fold is named.fold
        assert int(shown.view.tree.total[0]) == total
        assert parse(copied(user))[1] == shown.selection
        if named.levels is not None:
            assert copied(user)[:2] == ["--arrange", named.name]
            await user.press("z")
            await user.rest()
        assert user.screen.shown.selection == before


async def test_nested_stacks_show_functions_and_operators_as_they_ran(torch: Path) -> None:
    async with open_app(torch) as user:
        await user.press("L", "2")
        await user.rest()
        tree = user.screen.view.tree
        stacks = {tree.names(node) for node in tree.own.nonzero()[0].tolist()}
        kinds = {
            tuple(kind.title for kind in map(tree.kind, tree.path(node)[1:]))
            for node in tree.own.nonzero()[0].tolist()
        }
        assert any(kind[-2:] == ("launch", "kernel") for kind in kinds)
        assert any("python" in kind[kind.index("nvtx") :] for kind in kinds if "nvtx" in kind)
        assert any("ProfilerStep" in stack for stack in stacks)
        shown, session = user.screen.shown, user.screen.session
        assert shown.profile is session.profile.with_nested is not session.profile
        assert len(tree.node_of_group) == len(shown.profile.activities.groups)


async def test_what_is_found_and_filtered_stays_so_in_nested_stacks(torch: Path) -> None:
    async with open_app(torch, selection=BY_RANGE) as user:
        await user.press("slash", *"linear", "enter")
        weight = user.screen.view.matches.result.matches.total  # type: ignore[union-attr]
        await user.press("L", "2")
        await user.rest()
        assert user.screen.view.matches.result.matches.total >= weight  # type: ignore[union-attr]
        await user.press("A")
        await user.rest()
        (filter_,) = user.screen.shown.selection.where
        assert isinstance(filter_, ShowStacks)
        for view in ("sandwich", "top", "timeline", "icicle"):
            user.screen.action_show_view(view)
            await user.rest()


async def test_the_palette_has_every_arrangement_with_its_explanation(torch: Path) -> None:
    async with open_app(torch) as user:
        hits = {str(hit.display): hit async for hit in Commands(user.screen).discover()}  # type: ignore[union-attr]
        for digit, named in zip(ARRANGEMENT_KEYS, NAMED_LEVELS, strict=True):
            hit = hits[f"Arrange: {named.name}  (L {digit})"]
            assert hit.help == reworded(f"{named.name}: {named.about}", OPERATORS)
        await user.screen.run_action(Action.ARRANGE("kernels"))
        await user.rest()
        assert user.levels == "kernel"
        await user.screen.run_action(Action.ARRANGE("stalls"))
        assert "stalls: no PC samples" in user.read("status")


# Forward operators


async def test_backward_passes_stand_in_their_step_and_beside_it_again(torch: Path) -> None:
    async with open_app(torch, (200, 50), BY_RANGE, options=LINKED) as user:
        assert " forward " in user.read("header")
        inside = top_level(user)
        await user.press("B")
        await user.rest()
        assert " forward " not in user.read("header")
        assert top_level(user) > inside
        assert "--no-forward" in copied(user)
        assert parse(copied(user))[1] == user.screen.shown.selection
        await user.press("z")
        await user.rest()
        assert top_level(user) == inside and "--no-forward" not in copied(user)


async def test_the_header_and_the_dialog_take_them_back(torch: Path) -> None:
    async with open_app(torch, (200, 50), BY_RANGE, options=LINKED) as user:
        place = user.read("header").index(" forward ") + 2
        await user.pilot.click("HeaderLine", offset=(place, 0))
        await user.rest()
        assert not user.screen.shown.selection.forward
        await user.press("L")
        assert "b [ ]  forward" in user.read("dialog")
        await user.press("b", "enter")
        await user.rest()
        assert user.screen.shown.selection.forward


async def test_nested_stacks_follow_the_switch(torch: Path) -> None:
    nested = Selection(("nested", "kernel"), naming=USUAL.naming)
    async with open_app(torch, selection=nested, options=LINKED) as user:
        inside = top_level(user)
        await user.press("B")
        await user.rest()
        assert top_level(user) > inside


async def test_without_links_nothing_is_said(torch: Path) -> None:
    async with open_app(torch, (200, 50)) as user:
        assert " forward " not in user.read("header")
        await user.press("B")
        assert "no links from backward to forward operators" in user.read("status")
        assert user.screen.shown.selection.forward
