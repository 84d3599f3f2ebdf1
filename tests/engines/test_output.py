"""Where a summary of ranks is written, and what is never lost for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import InputError, UsageError
from flame.core.rank_summary.summary import empty_summary
from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from flame.core.ranks.inputs import RankInputs
from flame.core.ranks.job import RankFile, lost_summary
from flame.engines.output import SummaryOutput
from tests.engines.conftest import room_for
from tests.support.ranks.random_ranks import random_summary

SUMMARY = random_summary(1, 1, 4)
NONE = RankInputs((), (), (), ())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_kept_is_a_summary_and_goes_when_the_whole_is_there() -> None:
    output = SummaryOutput("x", NONE, force=False)
    output.keep(empty_summary())
    assert not output.kept
    output.keep(SUMMARY)
    assert len(unpack_summary(Path(output.kept).read_bytes(), "x")) == 1
    output.write(SUMMARY)
    assert Path("x").read_bytes() == pack_summary(SUMMARY)
    assert [path.name for path in Path().iterdir()] == ["x"]


@pytest.mark.parametrize("name", ["x", "x.partial"])
def test_no_file_is_replaced_unless_told(name: str) -> None:
    Path(name).write_text("mine")
    with pytest.raises(UsageError, match=rf"{name}: is there"):
        SummaryOutput("x", NONE, force=False)
    assert Path(name).read_text() == "mine"
    SummaryOutput("x", NONE, force=True).write(SUMMARY)
    assert Path("x").read_bytes() == pack_summary(SUMMARY)


def test_a_summary_that_is_read_may_be_replaced() -> None:
    for name in ("x", "x.partial"):
        Path(name).write_bytes(pack_summary(SUMMARY))
    output = SummaryOutput("./x", NONE._replace(merged=("x", "x.partial")), force=False)
    output.write(SUMMARY)
    assert [path.name for path in Path().iterdir()] == ["x"]


@pytest.mark.parametrize(
    "inputs",
    [
        NONE._replace(files=(RankFile("x", 5),)),
        NONE._replace(summaries=(lost_summary("x", "damaged"),)),
    ],
)
def test_what_is_read_and_is_no_summary_is_never_replaced(inputs: RankInputs) -> None:
    Path("x").write_text("mine")
    with pytest.raises(UsageError, match=r"-o x: is a file that is read"):
        SummaryOutput("x", inputs, force=True)


def test_a_file_that_appears_meanwhile_stays(folder: Path) -> None:
    output = SummaryOutput("x", NONE, force=False)
    Path("x").write_text("mine")
    with pytest.raises(UsageError, match=r"x: is there already; what has been read is in x\.part"):
        output.write(SUMMARY)
    assert Path("x").read_text() == "mine"
    assert Path("x.partial").read_bytes() == pack_summary(SUMMARY)


def test_what_another_run_keeps_meanwhile_stays(capfd: pytest.CaptureFixture[str]) -> None:
    output = SummaryOutput("x", NONE, force=False)
    Path("x.partial").write_bytes(b"of another run")
    output.keep(SUMMARY)
    said = "flame: what has been read is not kept: x.partial: is there already\n"
    assert capfd.readouterr().err == said and not output.kept
    output.write(SUMMARY)
    assert Path("x").read_bytes() == pack_summary(SUMMARY)
    assert Path("x.partial").read_bytes() == b"of another run"


def test_what_this_run_has_kept_is_replaced_by_more_of_it() -> None:
    output = SummaryOutput("x", NONE, force=False)
    for seed in (1, 2):
        output.keep(random_summary(seed, seed, 4))
    assert Path("x.partial").read_bytes() == pack_summary(random_summary(2, 2, 4))


def test_nothing_is_said_to_be_kept_where_both_names_are_taken() -> None:
    output = SummaryOutput("x", NONE, force=False)
    for name in ("x", "x.partial"):
        Path(name).write_text("mine")
    with pytest.raises(UsageError, match=r"^x: is there already$"):
        output.write(SUMMARY)
    assert [Path(name).read_text() for name in ("x", "x.partial")] == ["mine", "mine"]


def test_a_disk_that_is_full_at_the_end_leaves_what_was_kept(folder: Path) -> None:
    output = SummaryOutput("x", NONE, force=False)
    size = len(pack_summary(SUMMARY))
    with room_for(size - 1), pytest.raises(InputError, match=r"^x: cannot be written: [^;]*$"):
        output.write(SUMMARY)
    output.keep(SUMMARY)
    kept = r"^x: cannot be written: [^;]*; part of what has been read is in x\.partial$"
    with room_for(size - 1), pytest.raises(InputError, match=kept):
        output.write(SUMMARY)
    assert [path.name for path in folder.iterdir()] == ["x.partial"]
    assert Path("x.partial").read_bytes() == pack_summary(SUMMARY)


@pytest.mark.parametrize("name", ["none/x", ".", "file/x"])
def test_a_place_that_cannot_be_written_is_told_at_once(name: str) -> None:
    Path("file").touch()
    with pytest.raises((InputError, UsageError)):
        SummaryOutput(name, NONE, force=True)


def test_a_partial_that_cannot_be_written_ends_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    output = SummaryOutput("x", NONE, force=True)
    Path("x.partial").mkdir()
    output.keep(SUMMARY)
    assert "what has been read is not kept: x.partial: cannot be" in capfd.readouterr().err
    output.write(SUMMARY)
    assert Path("x").exists()
