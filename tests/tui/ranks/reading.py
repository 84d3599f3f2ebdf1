"""Read the app on a summary of ranks, and go to its frames."""

from __future__ import annotations

from flame.tui.ranks.session import RanksProjection
from tests.tui.conftest import User


def shown(user: User) -> RanksProjection:
    found = user.screen.shown
    assert isinstance(found, RanksProjection)
    return found


async def go_to(user: User, name: str) -> None:
    """Select the widest frame called ``name``."""
    tree = user.screen.shown.view.tree
    nodes = [node for node in range(len(tree)) if tree.name(node) == name]
    user.screen.action_select(max(nodes, key=lambda node: int(tree.total[node])))
    await user.rest()


def lines(user: User, name: str) -> list[str]:
    return user.read(name).split("\n")


def row_of(user: User, label: str) -> str:
    """The line of the details that begins with ``label``."""
    return next(one for one in lines(user, "details") if one.strip().startswith(label)).strip()


def ranks_in(user: User) -> list[int]:
    """The ranks of the heat map, from the top on."""
    return [int(one.split()[1]) for one in lines(user, "heat-map") if one.startswith("rank")]


def hint(user: User) -> str:
    return user.read("status").split("/ search")[-1].strip()
