"""Random walks through comparisons of odd pairs of traces: whatever is typed, the app holds."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from flame.tui.shell.commands import DIFF_COMMANDS
from samples.make_six_levels import FOLDER as SIX_LEVELS
from tests.conftest import TRACES, needs_traces
from tests.tui import traces
from tests.tui.conftest import User
from tests.tui.diff.opened import open_diff
from tests.tui.diff.test_kept_bases import kept
from tests.tui.monkey import SIZES, Monkey, leave, stay
from tests.tui.monkey import _elsewhere as _elsewhere

pytestmark = pytest.mark.deep

FOLDED = {"base.folded": "a;b;c 5\na;x* 3\na;b 2\n", "new.folded": "a;b;c 7\na;絵🚀 4\nb;a 1\n"}


class DiffMonkey(Monkey):
    """Presses the keys of comparisons, those that are of nothing else more often."""

    def __init__(self, user: User, seed: str) -> None:
        super().__init__(user, seed)
        bound = [key for one in DIFF_COMMANDS for key in one.keys.split(",") if key]
        self.keys = [*(key for key in bound if key not in ("q", "o")), *"pDVOpDVOzZ"]


async def walk(base: Path, new: Path, seed: int, steps: int) -> None:
    place = f"{base.name} {new.name} {seed}"
    async with open_diff(base, new, Random(place).choice(SIZES)) as user:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(user.app, "action_quit", stay)
            await DiffMonkey(user, place).walk(steps)
        await leave(user)
    assert user.app.crash is None and user.app.failure is None


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_typed_into_stacks(tmp_path: Path, seed: int) -> None:
    paths = [tmp_path / name for name in FOLDED]
    for path, text in zip(paths, FOLDED.values(), strict=True):
        path.write_text(text)
    await walk(paths[0], paths[1], seed, 40)


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_typed_into_a_small_trace_and_itself(tmp_path: Path, seed: int) -> None:
    path = traces.decode(tmp_path / "decode.sqlite")
    await walk(path, path, seed, 40)


@pytest.mark.parametrize("seed", range(2))
async def test_whatever_is_typed_into_a_kept_base_and_a_trace(tmp_path: Path, seed: int) -> None:
    path = traces.decode(tmp_path / "decode.sqlite")
    base = kept(tmp_path / "base.flame-base.json.gz", path)
    pair = (path, base) if seed else (base, path)
    await walk(pair[0], pair[1], seed, 40)


@pytest.mark.parametrize("seed", range(2))
async def test_whatever_is_typed_into_a_recording_with_samples(seed: int) -> None:
    path = SIX_LEVELS / "tiny_llm.fdump"
    await walk(path, path, seed, 40)


PAIRS = [
    ("nsys/rtx3070_train_17k.sqlite", "nsys/a100_llm_nvtx.sqlite"),
    ("kineto/b200_eager_python.json.gz", "kineto/h100_qwen_python.json.gz"),
    ("nsys/rtx3060_23k.sqlite", "kineto/h100_bert_small.json.gz"),
    ("kineto/v100_old_categories.json.gz", "kineto/v100_cuda_graphs.json.gz"),
    ("nsys/no_kernels.sqlite", "nsys/ten_streams.sqlite"),
    ("kineto/cpu_only.json.gz", "kineto/h100_bert_small.json.gz"),
]


@needs_traces
@pytest.mark.parametrize(("base", "new"), PAIRS)
async def test_whatever_is_typed_into_real_traces(base: str, new: str) -> None:
    await walk(TRACES / base, TRACES / new, 0, 40)
