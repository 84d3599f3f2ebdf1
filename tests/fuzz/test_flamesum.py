"""Summaries of ranks that were changed with the right signs, many of them, and by commands."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from flame.cli.main import main
from flame.core.errors import InputError
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_file import is_summary, unpack_summary
from flame.core.rank_summary.summary_head import origin_in
from tests.fuzz.checks import run
from tests.fuzz.target import find_target
from tests.fuzz.targets.kept_files import flamesum

pytestmark = pytest.mark.deep

MANY, SOME = 2_500, 60
COMMANDS = (
    ("ranks",),
    ("ranks", "--json"),
    ("report", "--md"),
    ("view", "--print"),
    ("view", "--print", "--levels", "rank,kernel", "--metric", "idle"),
    ("export", "-f", "folded", "-o", "-"),
    ("info",),
)
TARGET = find_target("flamesum")


def changed(number: int, draw: random.Random) -> bytes:
    """A seed with one change or a few."""
    assert TARGET.mutate is not None
    seeds = list(TARGET.seeds())
    data = TARGET.mutate(seeds[number % len(seeds)], draw)
    return TARGET.mutate(data, draw) if draw.random() < 0.25 else data


def test_many_changed_summaries_show_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, ask, opened = random.Random(11), flamesum.ask, 0

    def note(summary: RankSummary) -> None:
        nonlocal opened
        opened += 1
        ask(summary)

    monkeypatch.setattr(flamesum, "ask", note)
    for number in range(MANY):
        run(TARGET, changed(number, draw))
    assert 0 < opened < MANY // 2, "some are changed so that they still hold together"


def is_refused(data: bytes) -> bool:
    try:
        unpack_summary(data, "x")
    except InputError:
        return True
    return False


def is_a_rank(data: bytes) -> bool:
    """Whether it is what is kept of one dump, or may be a trace: a rank that is to be summed up."""
    return not is_summary(data) or bool(origin_in(data))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_refuse_them_in_one_line(
    command: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, draw = tmp_path / "x.flamesum", random.Random(12)
    for number in range(SOME):
        data = changed(number, draw)
        path.write_bytes(data)
        code = main([command[0], str(path), *command[1:]])
        out, said = capfd.readouterr()
        assert "\x1b" not in out + said
        if command[0] == "ranks" and is_a_rank(data):
            assert (code, out) == (2, "") and said.startswith("flame: 1 file to read: ")
            continue
        assert code == (3 if is_refused(data) else 0)
        if code:
            assert (out, said.count("\n")) == ("", 1)
            assert said.startswith(f"flame: {path}: ")
