"""What words of a command line name of ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_file import pack_summary
from flame.core.ranks.inputs import fill_in, list_paths, read_inputs
from tests.support.ranks.random_ranks import random_summary


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def summary(*ranks: int) -> RankSummary:
    return merge_summaries([random_summary(1, rank, 4) for rank in ranks])


def write(name: str, *ranks: int) -> str:
    Path(name).write_bytes(pack_summary(summary(*ranks)))
    return name


def test_each_file_is_listed_once() -> None:
    for name in ("b.sqlite", "a.sqlite", "[x].sqlite"):
        Path(name).touch()
    words = ["b.sqlite", "*.sqlite", "./a.sqlite", "[x].sqlite", "missing"]
    assert list_paths(words) == ["b.sqlite", "[x].sqlite", "a.sqlite", "missing"]


def test_a_pattern_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match=r"x\*: no file here matches"):
        list_paths(["x*"])


def test_a_folder_stands_for_its_dumps_and_has_some(folder: Path) -> None:
    (folder / "run").mkdir()
    with pytest.raises(
        InputError, match=r"run: is a folder with no dump \(\*\.fdump\) and no other trace"
    ):
        list_paths(["run"])
    for name in ("7-02.fdump", "9-01.fdump", "other"):
        (folder / "run" / name).write_text("damaged")  # Their reader says so.
    assert list_paths(["run"]) == ["run/9-01.fdump", "run/7-02.fdump"]


def test_a_folder_without_dumps_says_how_to_name_what_is_in_it(folder: Path) -> None:
    (folder / "run").mkdir()
    for name in ("a.sqlite", "b.sqlite", "c.json", "d.txt", "e.txt", "f.txt"):
        (folder / "run" / name).touch()
    with pytest.raises(InputError, match=r"name what is in it: 'run/\*\.sqlite'$"):
        list_paths(["run"])


def test_variables_of_the_environment_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "7")
    assert fill_in("part.%q{RANK}.flamesum") == "part.7.flamesum"
    assert fill_in("100%.sqlite") == "100%.sqlite"
    with pytest.raises(InputError, match="no variable NONE"):
        fill_in("%q{NONE}")


def test_summaries_are_told_by_content_and_what_they_have_is_not_read_again() -> None:
    name = write("some.name", 1, 2)
    there = summary(1).info[0].path
    found = read_inputs([name, f"{Path.cwd()}/{there}", "r9.sqlite"])
    assert [file.path for file in found.files] == ["r9.sqlite"]
    assert [len(one) for one in found.summaries] == [2]
    assert found.merged == (name,)
    assert found.notes == ("1 of the files are in the summaries already: not read again",)


def test_a_damaged_summary_is_lost() -> None:
    name = write("x.flamesum", 1)
    Path(name).write_bytes(Path(name).read_bytes()[:-3])
    found = read_inputs([name])
    ((lost,),) = (one.lost for one in found.summaries)
    assert (lost.path, found.merged, found.files) == (name, (), ())
    assert not lost.reason.startswith(name)


def test_a_summary_within_another_is_left_out_and_one_across_is_an_error() -> None:
    whole, part, across = write("whole", 1, 2, 3), write("part", 2), write("across", 3, 4)
    found = read_inputs([part, whole])
    assert sorted(len(one) for one in found.summaries) == [0, 3]
    assert found.notes == ("part: all its ranks are in whole: left out",)
    assert found.merged == (part, whole)
    with pytest.raises(InputError, match=r"across: has rank 3 \(.*\), and so has whole"):
        read_inputs([across, whole])
