"""From a flame graph down to an instruction and back, in a real terminal: key by key, in tmux."""

from __future__ import annotations

import pytest

from flame.core.loading.many import load
from flame.core.model.tree import StackTree
from flame.core.units import format_count
from samples.make_six_levels import FOLDER
from tests.support.paths import ROOT, SAMPLES
from tests.support.profiles.project_tree import project_tree
from tests.tui.test_first_minute import FLAME, Tmux, ended
from tests.tui.test_first_minute import pytestmark as pytestmark
from tests.tui.test_first_minute import tmux as tmux

SOURCE = SAMPLES / "llm_kernels.cu"


def heaviest(tree: StackTree) -> list[int]:
    """The nodes below the root to which the widest frames lead."""
    path = [0]
    while children := tree.children(path[-1]):
        path.append(children[0])
    return path[1:]


@pytest.mark.deep
def test_from_the_flame_graph_to_an_instruction(tmux: Tmux) -> None:
    profile = load(FOLDER)
    samples = project_tree(
        profile, levels="kernel,sass,stall", metric="stalls", kernel_names="short"
    )
    kernel, instruction, reason = heaviest(samples)
    frame, number = samples.frames[int(samples.frame[instruction])], int(samples.total[instruction])
    offset, text = samples.name(instruction).removeprefix("+").split(" ", 1)
    source = SOURCE.read_text("utf-8").splitlines()[frame.line - 1].strip()

    tmux.line(f"cd {ROOT}; {FLAME} view {FOLDER} --fold-layers")
    tmux.until("▏all  100.0 %", "a SASS")
    tmux.press("End")
    tmux.until(rf"▸ \+{offset} \S.* ▸ {samples.name(reason)}", "data from global")
    tmux.press("a")
    row = rf"{offset} +{format_count(number)} .* {text.split()[0]} "
    tmux.until(rf"kernel  {samples.name(kernel)} ", row, "hottest 1 of ", "all call sites")
    tmux.until(rf"{SOURCE.name}:{frame.line}  {source[:9]}")

    tmux.press("h")
    tmux.until("hottest 2 of ")
    tmux.search("EXIT")
    tmux.until(" 1 row matches")
    tmux.press("Enter")
    tmux.until(" 1 row matches · match 1")
    tmux.press("Escape")
    tmux.until_gone("matches")
    tmux.press("f", "h")
    tmux.until("hottest 1 of ", r"\d+ instructions without samples")
    tmux.press("q")
    tmux.until("▏<module>", rf"▸ {samples.name(reason)}")

    tree = project_tree(profile, levels="stall,nvtx,kernel")
    worst = tree.name(tree.children(0)[0])
    tmux.press("L")
    tmux.until("9  stalls")
    tmux.press("9")
    tmux.until(r"GPU time ▾\s+stall › nvtx › kernel", f"▏{worst} *▏")
    tmux.press("q")
    ended(tmux)
