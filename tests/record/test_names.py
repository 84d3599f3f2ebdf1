"""What a recording is called, and what its options and its live line say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import UsageError
from flame.core.units import parse_size
from flame.record.environment import unix_minus_monotonic
from flame.record.folder import recording_name
from flame.record.status_line import _clock
from flame.record.totals import RecordedDumps, RecordingTotals
from tests.cli.conftest import Flame


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py --epochs 3", "train"),
        ("python -u /a/b/train.py", "train"),
        ("python3.11 -m pkg.train -x", "pkg.train"),
        ("python -m torch.distributed.run train.py", "train"),
        ("torchrun --nproc-per-node 2 train.py", "train"),
        ("python -c code", "python"),
        ("python manage run", "manage"),
        ("bash run.sh", "run"),
        ("/opt/app/a.out -m", "a.out"),
        ("./.hidden", "hidden"),
        ("/", "recording"),
    ],
)
def test_a_recording_is_called_after_what_is_run(command: str, name: str) -> None:
    assert recording_name(command.split()) == name


def test_code_is_no_name() -> None:
    assert recording_name(["bash", "-c", "python a/train.py"]) == "bash"


@given(st.lists(st.text(st.characters(exclude_characters="\0")), min_size=1))
def test_any_command_has_a_name_that_is_one_folder(command: list[str]) -> None:
    name = recording_name(command)
    assert name
    assert "/" not in name
    assert not name.startswith((".", "-"))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500MB", 500_000_000),
        ("4 GB", 4_000_000_000),
        ("1.5G", 1_500_000_000),
        ("2GiB", 2 << 30),
        ("64k", 64_000),
        ("1TiB", 1 << 40),
    ],
)
def test_amounts_of_data(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "5", "MB", "-1MB", "1.MB", "1e3MB", "1PB", "1 MB "])
def test_what_is_no_amount_of_data(text: str) -> None:
    with pytest.raises(UsageError, match="is not an amount of data: use forms like 500MB"):
        parse_size(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.9, "0:00"), (42, "0:42"), (61.5, "1:01"), (3723, "1:02:03")]
)
def test_elapsed_time(seconds: float, text: str) -> None:
    assert _clock(seconds) == text


@pytest.mark.parametrize(
    ("totals", "text"),
    [
        (RecordingTotals(), "no CUDA or NVTX yet"),
        (RecordingTotals(dumps=1), "1 process, 0 kernels, 0 B"),
        (RecordingTotals(dumps=2, kernels=1, bytes=2_000), "2 processes, 1 kernel, 2.00 kB"),
        (RecordingTotals(dumps=1, ranges=1_234, bytes=2_000), "1 process, 1,234 ranges, 2.00 kB"),
        (
            RecordingTotals(dumps=1, kernels=2, ranges=1, dropped=5, full=True),
            "1 process, 2 kernels, 1 range, 0 B, 5 dropped, no room for more",
        ),
        (
            RecordingTotals(dumps=1, kernels=2, stopped=True),
            "1 process, 2 kernels, 0 B, stopped as told",
        ),
    ],
)
def test_the_line_in_words(totals: RecordingTotals, text: str) -> None:
    assert totals.text == text


def test_what_is_no_dump_is_left_out(folder: Path) -> None:
    (folder / "1-2.fdump").write_bytes(b"FLAMEDMP")
    (folder / "3-4.fdump").write_bytes(b"")
    (folder / "cubins").mkdir()
    assert RecordedDumps(folder).update() == RecordingTotals()
    assert RecordedDumps(folder / "gone").update() == RecordingTotals()


def test_the_clock_is_read_to_the_microsecond() -> None:
    readings = [unix_minus_monotonic() for _ in range(5)]
    assert max(readings) - min(readings) < 1_000_000


@pytest.mark.parametrize("command", ["record", "doctor"])
def test_help(command: str, flame: Flame) -> None:
    result = flame(command, "--help")
    assert result.code == 0
    assert "exit codes: " in result.out
    if command == "record":
        assert "examples:\n  flame record python train.py\n" in result.out
        assert result.out.startswith("usage: flame record [options] [--] CMD")
