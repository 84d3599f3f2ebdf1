"""PC samples of both sides: reasons beside each other, and the instructions of either side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.compare.sides import Sides, runs_of
from flame.core.loading.inputs import Inputs
from flame.core.model.pc_samples import CodeSamples
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress
from flame.core.projection.selection import Selection
from flame.tui.diff.app import DiffApp
from flame.tui.diff.loading import RunInputs, SideInputs
from flame.tui.diff.selection import DiffSelection
from flame.tui.diff.session import DiffProjection, DiffSession, metrics_of_both
from flame.tui.sampling.both_reasons import both_reasons
from flame.tui.sampling.other_code import other_code, same_instructions
from flame.tui.sass.screen import SassScreen
from flame.tui.session.query import Query
from samples.make_six_levels import FOLDER as SIX_LEVELS
from tests.tui.conftest import USUAL, User, main_screen
from tests.tui.diff.opened import chosen, open_diff
from tests.tui.sampled import GEMM, GEMM_SAMPLES, Counts, code, gemm, sampled, samples, view_of
from tests.tui.sass.test_listing import of_counts
from tests.tui.traces import decode

SHOWN = Selection(("kernel", "sass", "stall"), naming=USUAL.naming)

FASTER: Counts = {**GEMM_SAMPLES, "long_scoreboard": [0, 0, 0, 0, 0, 2, 20, 0, 0, 0, 0, 0, 0]}
"""64 samples in place of 104: the load is waited for 20 times in place of 60."""

OTHER = tuple((text.replace("FMUL", "FFMA"), line) for text, line in GEMM)
"""The same code but for one instruction."""


def faster() -> list[CodeSamples]:
    return [samples(code(GEMM), FASTER)]


def compiled_otherwise() -> list[CodeSamples]:
    return [samples(code(OTHER), FASTER)]


class MadeDiff(DiffApp):
    """The app on two profiles that no files have."""

    def __init__(self, base: Profile, new: Profile, selection: DiffSelection) -> None:
        inputs = [RunInputs(Inputs((Path(name),))) for name in ("before", "after")]
        sides = SideInputs(inputs[:1], inputs[1:])
        super().__init__(sides, LoadOptions(), selection, ["before", "after"])
        self._profiles = base, new

    def _open(self, inputs: Inputs, progress: Progress) -> tuple[DiffSession, DiffProjection]:
        base, new = self._profiles
        sides = Sides(runs_of("BASE", [base]), runs_of("NEW", [new]))
        session = DiffSession(inputs, new, metrics_of_both(sides), self.options, sides=sides)
        shown = session.project([self._compared])
        assert isinstance(shown, DiffProjection)
        return session, shown


@asynccontextmanager
async def open_made(
    base: Profile, new: Profile, size: tuple[int, int] = (120, 50)
) -> AsyncIterator[User]:
    app = MadeDiff(base, new, chosen(SHOWN))
    async with app.run_test(size=size) as pilot:
        user = User(app, pilot)
        await user.until(lambda: main_screen(app))
        await user.settle()
        yield user


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Profile]:
    def made(of_gemm: Callable[[], list[CodeSamples]] = gemm) -> Profile:
        return sampled(tmp_path_factory.mktemp("sampled") / "decode.sqlite", of_gemm=of_gemm)

    return made


async def to_gemm(user: User) -> None:
    user.screen._search_for(Query("^gemm$"))
    await user.press("n", "escape")
    await user.rest()
    assert user.selected == "gemm"


async def test_the_details_have_the_reasons_of_both_sides(profile: Callable[..., Profile]) -> None:
    async with open_made(profile(), profile(faster)) as user:
        await to_gemm(user)
        rows = [line.split() for line in user.read("details").splitlines() if line.split()]
        at = rows.index(["PC", "samples"])
        assert rows[at + 1 : at + 3] == [["BASE", "104"], ["NEW", "64"]]
        assert ["59.6", "%", "34.4", "%", "−25.2", "Long", "Scoreboard"] in rows
        assert ["17.3", "%", "28.1", "%", "+10.8", "Wait"] in rows
        user.screen._search_for(Query("FMUL"))
        await user.press("n", "escape")
        await user.rest()
        rows = [line.split() for line in user.read("details").splitlines() if line.split()]
        at = rows.index(["PC", "samples"])
        assert rows[at + 1][:5] == ["BASE", "69", "66.3", "%", "of"]
        assert rows[at + 2][:5] == ["NEW", "29", "45.3", "%", "of"]


async def test_instructions_have_the_share_of_the_other_side(
    profile: Callable[..., Profile],
) -> None:
    async with open_made(profile(), profile(faster)) as user:
        await to_gemm(user)
        await user.press("a")
        head, columns = user.read("sass-head"), user.read("sass-columns")
        assert "NEW · the same code as in BASE" in head and "64 samples" in head
        assert columns.split()[:4] == ["offset", "samples", "%", "BASE"]
        assert "0x0060          29   45.3 %   66.3 %" in user.read("sass-rows")
        reasons = " ".join(user.read("sass-reasons").split())
        assert "BASE 69 66.3 % of kernel" in reasons
        assert "59.6 % 34.4 % −25.2 Long Scoreboard" in reasons
        await user.press("D")
        assert "BASE · the same code as in NEW" in user.read("sass-head")
        assert "0x0060          69   66.3 %   45.3 %" in user.read("sass-rows")
        reasons = " ".join(user.read("sass-reasons").split())
        assert "59.6 % 34.4 % −25.2 Long Scoreboard" in reasons, "base stays before new"


async def test_what_is_compiled_otherwise_is_said(profile: Callable[..., Profile]) -> None:
    async with open_made(profile(), profile(compiled_otherwise)) as user:
        await to_gemm(user)
        await user.press("a")
        assert "other code than in BASE: 12 of 13 instructions in both" in user.read("sass-head")
        row = next(line for line in user.read("sass-rows").splitlines() if "FFMA" in line)
        assert row.split()[1:5] == ["29", "45.3", "%", "new"]
        await user.press("down", "down", "D")
        view = view_of(user)
        assert view._listing.text(view._row) == GEMM[7][0], "the same instruction"
        await user.press("up", "up", "D")
        assert view._listing.text(view._row).startswith("FFMA"), "else the hottest"


@pytest.mark.deep
async def test_a_side_without_samples(profile: Callable[..., Profile]) -> None:
    full = profile()
    bare = replace(full, sampling=None)
    for sides, shown, other in (((bare, full), "NEW", "BASE"), ((full, bare), "BASE", "NEW")):
        async with open_made(*sides) as user:
            await to_gemm(user)
            assert "no samples" in user.read("details")
            await user.press("a")
            assert f"{shown} · {other} has no samples of it" in user.read("sass-head")
            await user.press("D")
            assert f"{other} has no samples of this kernel" in user.read("status")


@pytest.mark.deep
async def test_at_all_places_of_a_sandwich(profile: Callable[..., Profile]) -> None:
    async with open_made(profile(), profile(faster)) as user:
        user.screen._search_for(Query("^Wait$"))
        await user.press("n", "escape", "x")
        await user.rest()
        rows = [line.split() for line in user.read("details").splitlines() if line.split()]
        # 18 of 104 and 10 of 58, the samples of both kernels that have any.
        assert ["BASE", "28", "17.3", "%", "of", "kernel"] in rows
        await user.press("a")
        assert isinstance(user.app.screen, SassScreen) and "gemm" in user.read("sass-head")


@pytest.mark.deep
async def test_a_recording_and_itself() -> None:
    path = SIX_LEVELS / "tiny_llm.fdump"
    async with open_diff(path, path, selection=chosen(SHOWN)) as user:
        await user.press("down", "down", "enter")
        assert isinstance(user.app.screen, SassScreen)
        assert "the same code as in BASE" in user.read("sass-head")
        await user.press("q", "right")
        assert "unchanged" in user.read("status") and "×" not in user.read("status")
        assert "count" not in user.read("details") and "each" not in user.read("details")


@pytest.mark.deep
async def test_without_any_samples_it_says_so(tmp_path: Path) -> None:
    path = decode(tmp_path / "decode.sqlite")
    async with open_diff(path, path, selection=chosen(USUAL)) as user:
        await user.press("a")
        assert "no PC samples" in user.read("status")


def test_instructions_are_the_same_in_the_same_order() -> None:
    one, other = code(GEMM), code(OTHER[1:])
    here, there = same_instructions(one, one)
    assert here.tolist() == there.tolist() == [*range(13)]
    here, there = same_instructions(one, other)
    assert here.tolist() == [*range(1, 6), *range(7, 13)], "but for the first, and FMUL"
    assert there.tolist() == [at - 1 for at in here.tolist()]
    found = other_code(
        "BASE", one, [of_counts(code(OTHER), FASTER), of_counts(code(GEMM), GEMM_SAMPLES)]
    )
    assert found.same and found.whole == 64 + 104 and found.at.sum() == 104
    assert not other_code("BASE", one, []).alike.any()


def shifted() -> list[CodeSamples]:
    """The same code with two instructions before it, and other registers in one."""
    text = [("MOV R9, RZ", 1), ("NOP", 1), *GEMM]
    text[7] = ("LDG.E.128 R12, [R2.64]", 4)
    counts = {reason: [0, 0, *at] for reason, at in GEMM_SAMPLES.items()}
    return [samples(code(text), counts)]


async def test_recompiled_code_is_compared_instruction_by_instruction(
    profile: Callable[..., Profile],
) -> None:
    async with open_made(profile(), profile(shifted)) as user:
        await to_gemm(user)
        await user.press("a")
        head = user.read("sass-head")
        assert "13 of 15 instructions in both, 1 with other operands" in head
        lines = [line.split() for line in user.read("sass-rows").splitlines()]
        rows = {line[0]: line[1:] for line in lines if line}
        assert rows["0x0000"][0] == "new", "no samples of it"
        assert rows["0x0080"][:5] == ["69", "66.3", "%", "66.3", "%"], "two further on"
        view = view_of(user)
        view._begin(view._listing.row_of(8))
        await user.press("D")
        assert view._listing.text(view._row) == "FMUL R8, R8, R9", "the same instruction"
        assert "13 of 13 instructions in both" in user.read("sass-head")


def test_reasons_of_one_side_alone_have_no_points() -> None:
    lines = both_reasons([("wait", 3), ("barrier", 1)], [], 60)
    texts = ["".join(piece.text for piece in line).split() for line in lines]
    assert texts == [
        ["BASE", "NEW", "points"],
        ["75.0", "%", "–", "Wait"],
        ["25.0", "%", "–", "Barrier"],
    ]
    assert len(both_reasons([(str(at), 1) for at in range(9)], [], 60, most=6)) == 1 + 6 + 1
