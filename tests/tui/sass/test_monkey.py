"""The view of instructions under random keys, and what it writes to a real terminal."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from flame.core.model.pc_samples import Code, CodeSamples
from flame.tui.main.screen import MainScreen
from flame.tui.shell.sass_commands import SASS_COMMANDS
from tests.support.tiers import deep_except
from tests.tui import sampled
from tests.tui.monkey import COMMON, SIZES, Monkey, leave, stay
from tests.tui.sampled import open_made
from tests.tui.terminals import Terminal, start

EVIL = (
    "\x1b[2J",
    "[red]x[/]",
    "\u202eabc",
    "\0",
    "絵🚀",
    "z" + "\u0301" * 99,
    "x" * 5_000,
    "",
    "a\nb",
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("TMUX", raising=False)


def keys() -> list[str]:
    """Everything that is bound in the view, but for what starts an editor."""
    bound = [key for command in SASS_COMMANDS for key in command.keys.split(",") if key]
    return [key for key in bound if key != "o"]


def evil() -> list[CodeSamples]:
    """Every text in `EVIL` as an instruction, a file and a source line."""
    known = sampled.code([(text, 1 + place) for place, text in enumerate(EVIL)], EVIL[0], EVIL[1])
    texts = {(0, 1 + place): text for place, text in enumerate(EVIL)}
    hostile = Code(EVIL[2], known.offset, known.text, known.file, known.line, EVIL[:1], texts)
    return [sampled.samples(hostile, {"wait": range(len(EVIL)), EVIL[0]: [1] * len(EVIL)})]


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("seed", deep_except([], range(3)))
async def test_walk(
    tmp_path: Path, seed: int, hostile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hostile:
        monkeypatch.setattr(sampled, "gemm", evil)
    profile = sampled.sampled(tmp_path / "decode.sqlite")
    random = Random(seed)
    async with open_made(profile, random.choice(SIZES)) as user:
        monkey = Monkey(user, f"sass {seed}")
        monkey.keys = [*keys(), *COMMON]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(user.app, "action_quit", stay)
            for _ in range(6):
                if isinstance(user.app.screen, MainScreen):
                    await user.press("escape", "a")
                await monkey.walk(6)
        await leave(user)
    assert user.app.crash is None


def page(kernels: int = 1, instructions: int = 300) -> str:
    """A source page of Nsight Compute as CSV."""
    lines = []
    for _ in range(kernels):
        lines.append('"Kernel Name","void cutlass::gemm<float>(Params)",')
        lines.append(
            '"Address","Source","Warp Stall Sampling (All Cycles)","stall_long_sb","stall_wait"'
        )
        for place in range(instructions):
            text = f"IMAD R{place % 90}, R{place % 7}, c[0x0][0x160], R3"
            counts = (place % 50, place % 50 // 2, (place % 50 + 1) // 2)
            lines.append(",".join(f'"{one}"' for one in (hex(16 * place), text, *counts)))
    return "\n".join([*lines, ""])


REPORT = """
from functools import partial
LoadOptions = partial(LoadOptions, ncu=({report!r},))
"""


@pytest.mark.deep
def test_bytes_per_key_stay_small(terminals: list[Terminal], decode: Path, tmp_path: Path) -> None:
    report = tmp_path / "source.csv"
    report.write_text(page(), encoding="utf-8")
    terminal = start(terminals, decode, REPORT.format(report=str(report)))
    terminal.read_until("model.layers.1.mlp")
    terminal.settle()
    terminal.press("a")
    terminal.read_until("Long Scoreboard")
    terminal.settle()
    assert len(terminal.output) < 40_000
    for key, most in (("j", 5_000), ("j", 3_000), ("h", 20_000), ("m", 20_000), ("q", 30_000)):
        terminal.press(key)
        terminal.answered()
        assert 0 < len(terminal.output) < most, key
