"""What the app writes of a frame are the stacks that plain loops find below it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from flame.tui.dialogs.write_files import ExportedStacks
from tests.support.oracles.facts import CAPTURED
from tests.support.oracles.naive_tree import tree_stack
from tests.system.views.shown_cases import Looked, looked, nodes_of, on_real


def check_exports(one: Looked, folder: Path) -> None:
    tree, view = one.tree, one.shown.view
    for node in nodes_of(tree, 2):
        view.zoom_to(view.viewport.zoom_of(node))
        path = tree_stack(tree, view.viewport.zoom.node)
        stacks = Counter[str]()
        for each in one.plain:
            if each.path[: len(path)] == path and each.value:
                names = (text.removesuffix(CAPTURED).replace(";", ":") for _, text in each.path)
                stacks[";".join(name or "[empty]" for name in names) or "all"] += each.value
        if stacks:
            written = ExportedStacks(
                one.shown.profile, "trace", tree.restrict_to(view.viewport.zoom.node)
            )
            assert read_folded(written, folder) == stacks
            assert read_speedscope(written, folder) == sum(stacks.values())
            assert sum(stacks.values()) == view.viewport.total
    view.reset()


def read_folded(written: ExportedStacks, folder: Path) -> dict[str, int]:
    written.write("folded", str(folder / "folded.txt"), replace=True)
    lines = (folder / "folded.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return {stack: int(value) for stack, value in (line.rsplit(" ", 1) for line in lines)}


def read_speedscope(written: ExportedStacks, folder: Path) -> int:
    written.write("speedscope", str(folder / "speedscope.json"), replace=True)
    [profile] = json.loads((folder / "speedscope.json").read_bytes())["profiles"]
    assert profile["endValue"] == sum(profile["weights"])
    return int(profile["endValue"])


@on_real
def test_what_is_shown_is_what_is_written(trace: str, tmp_path: Path) -> None:
    for one in looked(trace):
        check_exports(one, tmp_path)
