"""The sections on ranks say what was planted, and where nothing is or is not known, that."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from flame.core.options import LoadOptions
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.core.rank_summary.summary import LostRank, RankInfo
from flame.core.ranks.communication.clocks import RankClocks
from flame.core.ranks.communication.worst import (
    CollectiveCall,
    CollectiveKind,
    WorstCollectives,
)
from flame.core.ranks.rank_sections.questions import (
    CollectiveCounts,
    LateRanks,
    NotKnown,
    RankQuestions,
    Unmatched,
)
from flame.core.ranks.report import SECTIONS, rank_sections
from flame.exporters.tables.files import as_csv
from flame.reporting.html import as_html
from flame.reporting.links import links
from flame.reporting.markdown import as_markdown
from flame.reporting.report_json import as_json
from flame.reporting.text import as_text
from tests.support.ranks.rank_runs import MS, Path, even_run, questions_of
from tests.support.tiers import deep_except

RANKS = 8
SLOW, LATE, ODD = 3, 5, 6
UNMATCHED = Unmatched("stream 0", 12, "2 ranks have 641, 6 have 640")
GEMM: Path = ("step", "layer2", "gemm")
LINK = links(["run.flamesum"], LoadOptions(), Selection(naming=Naming("short", numbers=True)))


def infos(ranks: int = RANKS, seed: int = 1) -> tuple[RankInfo, ...]:
    draw = np.random.default_rng(seed)
    times = (100 * MS * (1 + 0.003 * draw.standard_normal((ranks, 20)))).astype(np.int64)
    return tuple(
        RankInfo(
            2 * at,
            f"runs/rank{2 * at:04d}.sqlite",
            step_numbers=tuple(range(20)),
            step_times=tuple(times[at].tolist()),
        )
        for at in range(ranks)
    )


def late_ranks(ranks: int = RANKS) -> LateRanks:
    """Rank 6, at place 3, is late by work, rank 10 by its host, rank 2 a little."""
    columns = np.zeros((5, ranks), np.int64)
    columns[:, 3] = 276, 4_229_800_000, 1_800_000, 990, 10
    columns[:, 5] = 4, 398_400_000, 90_000_000, 10, 990
    columns[:, 1] = 8, 99_000_000, 95_000_000, 0, 0
    is_late = np.isin(np.arange(ranks), (3, 5))
    columns[2, 6] = -1
    last, caused, waited, by_work, by_idle = columns
    return LateRanks(last, caused, waited, by_work, by_idle, is_late)


def faulty(**more: Any) -> RankQuestions:
    stacks = even_run(RANKS, 2)
    stacks[GEMM][SLOW] = int(1.25 * stacks[GEMM][SLOW])
    stacks["step", "layer1", "fallback_gemm"] = [0] * ODD + [800_000] + [0] * (RANKS - ODD - 1)
    at = np.arange(7)
    clocks = RankClocks(2 * at, at * MS, np.full(7, 12), np.zeros(7, np.int64))
    known: dict[str, Any] = {
        "info": infos(),
        "lost": (LostRank("runs/rank0099.sqlite", "cut off"),),
        "collectives": CollectiveCounts(300, 288, (UNMATCHED,)),
        "late": late_ranks(),
        "clocks": clocks,
    }
    return questions_of(stacks, **(known | more))


def rows(questions: RankQuestions, name: str, key: str = "rows") -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads(
        as_json(rank_sections(questions, [name]), 1000, LINK, {"path": ["run.flamesum"]})
    )
    found: list[dict[str, Any]] = document[name][key]
    return found


def text(questions: RankQuestions, *names: str) -> str:
    return as_text(rank_sections(questions, names or SECTIONS), 160, 10, None, LINK)


def test_findings_are_what_was_planted() -> None:
    found = rows(faulty(), "findings")
    assert [(one["id"], one["rank"]) for one in found] == [
        ("lost-ranks", None),
        ("late-rank", 6),
        ("late-rank", 10),
        ("outlier", 6),
        ("only-some", 12),
        ("unmatched", None),
    ]
    views = [one["view"] for one in found]
    assert views[1] == "flame view runs/rank0006.sqlite"
    assert views[2] == "flame view runs/rank0010.sqlite --metric idle"
    assert views[3].startswith("flame view runs/rank0006.sqlite --levels nvtx,kernel --state ")
    assert "gemm" in views[3]


def test_findings_in_words() -> None:
    said = " ".join(text(faulty(), "findings").split())
    for words in (
        "rank 6: The others wait for it last to 276 collectives of 288; others waited 4.23 s for "
        "it (89.5 % of all waiting), late by GPU work (99 %), most of all in step / layer2 / gemm",
        "rank 10: The others wait for it last to 4 collectives of 288; others waited 398 ms for "
        "it (8.4 % of all waiting), late by its host, GPU idle (99 %)",
        "flame view runs/rank0006.sqlite",
        "22.6 % longer in gemm step / layer2 / gemm: 49.2 ms, 40.1 ms on the median rank",
        "rank 12: Alone in fallback_gemm",
        "1 file: Not read, and not in it runs/rank0099.sqlite: cut off",
        "collectives: Not all match over ranks 12 of 300 do not, and nothing is said about waiting "
        "in them. stream 0: 2 ranks have 641, 6 have 640",
    ):
        assert words in said
    assert "rank 2:" not in said, "what is within chance is not told"


@pytest.mark.parametrize("seed", deep_except([0], range(40)))
@pytest.mark.parametrize("ranks", [1, 2, 4, 16, 64])
def test_in_an_even_run_nothing_is_told(ranks: int, seed: int) -> None:
    stacks = {path: [max(one, 1) for one in row] for path, row in even_run(ranks, seed).items()}
    questions = questions_of(stacks, info=infos(ranks, seed))
    assert rows(questions, "findings") == []
    said = text(questions)
    assert "Nothing beyond chance" in said
    assert "! " not in said
    if ranks == 1:
        assert "late-rank, outlier, only-some, slowest-rank: there is one rank alone" in said
        assert "outliers, only_some: there is one rank alone; name the files of all ranks" in said
    else:
        assert "late-rank: no collectives were recorded" in said
        assert "all ranks run the same frames" in said
    if ranks == 2:
        assert "two ranks cannot tell which is the odd one" in said


def test_who_makes_others_wait() -> None:
    found = rows(faulty(), "late")
    assert [(one["rank"], one["finding"]) for one in found] == [(6, "!"), (10, "!"), (2, None)]
    assert (found[0]["last"], found[0]["caused_ns"], found[0]["waited_ns"]) == (
        276,
        4_229_800_000,
        1_800_000,
    )
    assert (found[0]["by"], found[0]["by_percent"]) == ("GPU work", 99.0)
    assert found[0]["view"] == "flame view runs/rank0006.sqlite"
    absent = faulty(late=None, clocks=None, not_late=NotKnown("the ranks disagree", "record all"))
    said = text(absent, "late", "collectives", "clocks")
    assert "late, collectives, clocks: the ranks disagree; record all\n" in said


def test_collectives_that_cost_most() -> None:
    kinds = (
        CollectiveKind("all-reduce", "tp of dp 0", 4, 20, 3_000, 1_000, 6, 15, 2_700),
        CollectiveKind("all-gather", "stream 1", 8, 10, 0, 5_000, None, 0, 0),
    )
    call = CollectiveCall("all-reduce", "tp of dp 0", 7, 4, 500, 50, 6, 30, 10, 2, 200)
    questions = faulty(worst=WorstCollectives(3_000, kinds, (call,)))
    first, second = rows(questions, "collectives", "kinds")
    assert (first["percent"], first["waiting_percent"], first["last_percent"]) == (100, 75, 90)
    assert (first["last_rank"], first["last_calls"], first["communicator"]) == (6, 15, "tp of dp 0")
    assert (second["waited_ns"], second["last_rank"], second["last_percent"]) == (0, None, None)
    [one] = rows(questions, "collectives", "calls")
    assert (one["number"], one["last_rank"], one["waited_ns"], one["by"]) == (7, 6, 500, "GPU work")
    assert (one["by_percent"], one["first_rank"], one["longest_wait_ns"]) == (75.0, 2, 200)
    assert one["view"] == "flame view runs/rank0006.sqlite"
    nobody = faulty(worst=WorstCollectives(0, kinds[1:], ()))
    assert "no rank waited for another" in text(nobody, "collectives")


def test_outliers_by_the_definition_and_those_to_look_at() -> None:
    found = rows(faulty(), "outliers")
    marked = [one for one in found if one["finding"]]
    assert [(one["frame"], one["rank"], one["ranks"]) for one in marked] == [
        ("step / layer2 / gemm", 6, "6")
    ]
    assert marked[0]["value"] - marked[0]["median"] == pytest.approx(marked[0]["excess"], abs=1)


def test_frames_that_only_some_ranks_run() -> None:
    [one] = rows(faulty(), "only_some")
    assert (one["frame"], one["ranks"], one["there"], one["most"]) == (
        "step / layer1 / fallback_gemm",
        "12",
        1,
        800_000,
    )


def test_the_spread_of_the_widest_frames() -> None:
    questions = faulty()
    found = rows(questions, "frames")
    assert found[0]["frame"] == "all"
    gemm = next(one for one in found if one["frame"] == "step / layer2 / gemm")
    values = questions.values_of(np.array([questions.tree.find(GEMM)]))[0]
    assert (gemm["min"], gemm["max"], gemm["worst"]) == (values.min(), values.max(), 6)
    above = 100 * (values.max() / values.mean() - 1)
    assert gemm["imbalance_percent"] == pytest.approx(above, abs=1e-3)
    few = next(one for one in found if one["frame"].endswith("fallback_gemm"))
    assert (few["there"], few["median"], few["deviation_percent"]) == (1, 0, None)


def test_steps_clocks_and_lost() -> None:
    questions = faulty()
    steps = rows(questions, "steps")
    assert len(steps) == 20
    assert steps[0]["percent"] >= steps[-1]["percent"]
    assert "the slowest rank rotates" in text(questions, "steps")
    assert [one["rank"] for one in rows(questions, "clocks")] == [12, 10, 8, 6, 4, 2, 0]
    assert rows(questions, "lost") == [{"path": "runs/rank0099.sqlite", "reason": "cut off"}]
    said = text(questions, "summary")
    assert "8, 1 could not be read" in said
    assert "288 of 300 matched on all ranks" in said
    assert "up to 6.00 ms apart, told by the ends of collectives to 12 ns" in said


def test_a_rank_that_is_the_slowest_again_and_again_is_told() -> None:
    info = list(infos())
    slow = tuple(int(1.1 * one) for one in info[4].step_times)
    info[4] = msgspec.structs.replace(info[4], step_times=slow)
    questions = questions_of(even_run(RANKS, 2), info=tuple(info))
    [one] = rows(questions, "findings")
    assert (one["id"], one["rank"]) == ("slowest-rank", 8)
    assert one["claim"].startswith("longest in 20 of 20 steps (100 %), in all ")


def test_clocks_that_collectives_cannot_tell_are_not_compared() -> None:
    clocks = RankClocks(
        np.arange(3), np.array([0, 5, 9]), np.array([3, 50, 4]), np.array([0, 0, 1])
    )
    questions = questions_of(even_run(3, 1), clocks=clocks)
    assert "collectives tell them no better than 50 ns" in text(questions, "clocks")
    assert "clocks compare within a part alone" in text(questions, "clocks")
    nobody = RankClocks(*[np.zeros(0, np.int64)] * 4)
    for each in (nobody, None):
        said = text(questions_of(even_run(3, 1), clocks=each), "clocks")
        assert "clocks: no collectives were recorded; record NCCL's kernels" in said
    some = questions_of(even_run(3, 1), clocks=None, late=late_ranks())
    assert "clocks: no collective is known to end at a time of day" in text(some, "clocks")


def test_what_was_left_out_is_said() -> None:
    stacks = even_run(4, 1)
    questions = questions_of(stacks, left_out=np.array([0, 2000, 0, 500]))
    assert "2.50 µs of all" in text(questions, "summary")


def test_all_zero_is_said() -> None:
    questions = questions_of({("step", "gemm"): [0, 0, 0]})
    assert "none of it" in text(questions, "summary")
    assert rows(questions, "findings") == []
    assert "worst" not in rows(questions, "frames")[0]


def test_all_writers_take_all_sections(tmp_path: Any) -> None:
    sections = rank_sections(faulty())
    markdown = as_markdown(sections, 10)
    assert "- **info** rank 12: **Alone in fallback\\_gemm**" in markdown
    page = as_html(sections, 10, LINK, title="run", icicle="")
    assert "The others wait for it" in page and "flame view runs/rank0006.sqlite" in page
    assert all(as_csv(table) for section in sections for table in section.tables)


def test_names_from_a_file_stay_off_the_terminal() -> None:
    stacks: dict[Path, list[int]] = {("st\x1b[2Jep", "gemm\n"): [100, 100, 100, 900]}
    info = tuple(RankInfo(at, f"runs/\x1b]0;x\x07{at}") for at in range(4))
    said = text(questions_of(stacks, info=info, lost=(LostRank("\x1b[2J", "\x1b[2J"),)))
    assert "\x1b" not in said and "\x07" not in said
