"""Judge ranks: who makes the others wait and why, whose frames differ, what is not known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.lazy_dataclass import dataclass
from flame.core.ranks.only_some import rank_words, same_ranks
from flame.core.ranks.outliers import to_tell
from flame.core.ranks.rank_sections.questions import ONE_RANK, LateRanks, RankQuestions
from flame.core.ranks.steps import costs_much
from flame.core.report.findings.finding import Abstained, Severity, severity_of
from flame.core.report.table import Place
from flame.core.units import format_count, format_counted, format_ns, format_percent

MOST_SETS = 8
"""Sets of ranks with frames of their own that are told, and outliers, those with the most first."""

_RULES = {
    "lost-ranks": "files of ranks could not be read",
    "late-rank": "the time that others waited for the rank, or how often it came last, is beyond "
    "chance (1 %, of permutations), and they waited 5 % of all waiting or more",
    "outlier": "the frame is no collective, half of the ranks have it, and the rank has more than "
    "the median by 6 robust deviations (of the frame, and of all frames of the run), 3 % of it and "
    "0.3 % of the median rank's GPU time",
    "only-some": "the innermost frame has GPU time on some ranks and none on others",
    "slowest-rank": "one rank is the slowest in more steps than chance makes it, and its steps "
    "cost 1 % of all or more",
    "unmatched": "collectives lack ranks, or are not the same on all of them",
}


@dataclass(frozen=True)
class RankFinding:
    """Say what is odd of some ranks, and what to do next.

    ``where`` are the ranks, in words, ``rank`` is the number of a single one. ``place`` leads to a
    rank's own file, or into the summary; ``section`` has the numbers.
    """

    id: str
    where: str
    severity: Severity
    title: str
    claim: str
    advice: str
    section: str
    place: Place | None = None
    rank: int | None = None

    @property
    def rule(self) -> str:
        """When it is told, in words."""
        return _RULES[self.id]


def find_in_ranks(questions: RankQuestions) -> list[RankFinding]:
    """List all findings: what is missing first, then who is late, whose frames differ, the rest."""
    return [
        *_lost(questions),
        *_late(questions),
        *_outliers(questions),
        *_slowest(questions),
        *_only_some(questions),
        *_unmatched(questions),
    ]


def abstained_on_ranks(questions: RankQuestions) -> list[Abstained]:
    """List what cannot be judged, and why."""
    if questions.ranks < 2:
        return [Abstained("late-rank, outlier, only-some, slowest-rank", ONE_RANK.why)]
    found = list[Abstained]()
    if questions.ranks < 3:
        found.append(Abstained("outlier", "two ranks cannot tell which is the odd one"))
    if questions.late is None:
        found.append(Abstained("late-rank", questions.not_late.why))
    if questions.slowest is None:
        found.append(Abstained("slowest-rank", "no step is known of two ranks or more"))
    if questions.only_some.unsure:
        number = format_counted(questions.only_some.unsure, "frame", "frames")
        why = f"small values of {number} were left out of the summary: who has them is not known"
        found.append(Abstained("only-some", why))
    return found


def late_places(late: LateRanks) -> list[int]:
    """List the places of ranks that are told as late, the one that costs others most first."""
    order = np.argsort(-late.caused, kind="stable")
    return [at for at in order.tolist() if late.is_late[at]]


def why_late(late: LateRanks, place: int) -> tuple[str, float | None]:
    """Say why a rank is late, and which part of what it takes longer that is; None of nothing."""
    return late_by(int(late.by_work[place]), int(late.by_idle[place]))


def late_by(work: int, idle: int) -> tuple[str, float | None]:
    """Say what made a rank late whose GPU worked and was idle for so much longer, as `why_late`."""
    if not work + idle:
        return "", None
    if work >= idle:
        return "GPU work", work / (work + idle)
    return "its host, GPU idle", idle / (work + idle)


def _lost(questions: RankQuestions) -> Iterator[RankFinding]:
    if lost := questions.lost:
        number = format_counted(len(lost), "file", "files")
        yield RankFinding(
            "lost-ranks",
            number,
            "high" if 10 * len(lost) >= questions.ranks else "info",
            "Not read, and not in it",
            f"{lost[0].path}: {lost[0].reason}" + ("; and others" if len(lost) > 1 else ""),
            "Nothing of them is in what follows. Mend the files and add them to the summary: "
            "flame ranks RUN.flamesum FILE… -o RUN.flamesum.",
            "lost",
        )


def _late(questions: RankQuestions) -> Iterator[RankFinding]:
    late = questions.late
    if late is None:
        return
    whole = int(late.caused.sum())
    for at in late_places(late):
        cause, part = why_late(late, at)
        by = "" if part is None else f", late by {cause} ({100 * part:.0f} %)"
        caused = int(late.caused[at])
        name = questions.rank_name(at)
        yield RankFinding(
            "late-rank",
            name,
            _severity(questions, caused / max(questions.ranks - 1, 1)),
            "The others wait for it",
            f"last to {format_counted(int(late.last[at]), 'collective', 'collectives')}"
            f" of {format_count(questions.collectives.matched)}; others waited {format_ns(caused)} "
            f"for it ({format_percent(caused, whole)} of all waiting){by}"
            f"{_slow_frame(questions, at)}",
            _advice_on_late(cause),
            "late",
            Place(metric="idle" if "idle" in cause else "gpu", file=questions.info[at].path),
            questions.info[at].rank,
        )


def _advice_on_late(cause: str) -> str:
    if "idle" in cause:
        return "See in its own file what its host did while its GPU was idle."
    if cause:
        return "See in its own file what takes it longer than others: outliers name the frames."
    return "See in its own file what it does before its collectives."


def _slow_frame(questions: RankQuestions, place: int) -> str:
    """The frame that takes a rank longer than others most of all, in words."""
    found = questions.outliers
    mine = np.flatnonzero(to_tell(found, questions.tree.end) & (found.worst == place))
    if not len(mine):
        return ""
    at = int(mine[0])
    return f", most of all in {questions.path_of(int(found.node[at]))}"


def _outliers(questions: RankQuestions) -> Iterator[RankFinding]:
    found = questions.outliers
    for at in np.flatnonzero(to_tell(found, questions.tree.end))[:MOST_SETS].tolist():
        node, worst = int(found.node[at]), int(found.worst[at])
        excess, median = float(found.excess[at]), float(found.median[at])
        name, frame = questions.rank_name(worst), questions.tree.name(node)
        others = int(np.count_nonzero(found.is_far[at])) - 1
        also = f"; {format_counted(others, 'other', 'others')} too" if others else ""
        yield RankFinding(
            "outlier",
            name,
            _severity(questions, excess),
            f"{format_percent(excess, median)} longer in {frame}",
            f"{questions.path_of(node)}: {format_ns(int(found.value[at]))}, {format_ns(median)} on "
            f"the median rank, {found.deviations[at]:.1f} deviations above it{also}",
            "Compare its own file with another rank's: the same work, a slower GPU, or more of it?",
            "outliers",
            _frame_place(questions, node, worst),
            questions.info[worst].rank,
        )


def _slowest(questions: RankQuestions) -> Iterator[RankFinding]:
    slowest = questions.slowest
    if slowest is None or not slowest.repeats or not costs_much(slowest, questions.steps):
        return
    name = questions.rank_name(slowest.worst)
    yield RankFinding(
        "slowest-rank",
        name,
        _of_steps(slowest.loss, int(questions.steps.median.sum())),
        "The slowest again and again",
        f"longest in {format_count(slowest.steps)} of {format_count(slowest.of)} steps "
        f"({100 * slowest.share:.0f} %), in all {format_ns(slowest.loss)} longer than the median "
        "rank",
        "See its own file. Where steps end in a collective all ranks take equally long: then late "
        "tells who makes them long.",
        "steps",
        Place(file=questions.info[slowest.worst].path),
        questions.info[slowest.worst].rank,
    )


def _only_some(questions: RankQuestions) -> Iterator[RankFinding]:
    found = questions.only_some
    for places in same_ranks(found.is_there)[:MOST_SETS]:
        first = int(places[0])
        node, there = int(found.node[first]), np.flatnonzero(found.is_there[first])
        who = rank_words(questions.numbers(there))
        name = f"rank {who}" if len(there) == 1 else f"ranks {who}"
        more = format_counted(len(places) - 1, "more frame", "more frames")
        also = f", and {more}" if len(places) > 1 else ""
        most = int(found.most[first])
        yield RankFinding(
            "only-some",
            name,
            _severity(questions, most),
            f"Alone in {questions.tree.name(node)}{also}",
            f"{questions.path_of(node)}: {format_ns(most)} at most on a rank, on "
            f"{format_count(len(there))} of {format_count(questions.ranks)}",
            "Pipeline stages differ by design; in ranks that are to do the same it is another "
            "code path, shape or library.",
            "only_some",
            _frame_place(questions, node, int(there[0])),
            questions.info[int(there[0])].rank if len(there) == 1 else None,
        )


def _unmatched(questions: RankQuestions) -> Iterator[RankFinding]:
    """The communicators whose collectives are not matched, as one finding."""
    counts = questions.collectives
    if not counts.unmatched or questions.ranks < 2:
        return
    told = [f"{one.communicator}: {one.why}" for one in counts.unmatched[:MOST_SETS]]
    more = ["…"] * (len(counts.unmatched) > MOST_SETS)
    yield RankFinding(
        "unmatched",
        "collectives",
        "info",
        "Not all match over ranks",
        f"{format_count(counts.number - counts.matched)} of {format_count(counts.number)} do not, "
        f"and nothing is said about waiting in them. {'; '.join([*told, *more])}",
        "Recordings that begin or end at different moments do so; in a run that hangs, ranks with "
        "fewer collectives are the ones to look at.",
        "summary",
    )


def _frame_place(questions: RankQuestions, node: int, rank: int) -> Place:
    tree = questions.tree
    return Place(tree.levels, tree.names(node), tree.metric.key, file=questions.info[rank].path)


def _severity(questions: RankQuestions, ns: float) -> Severity:
    """Grade what a rank loses, by the GPU time of the median rank."""
    return severity_of(int(ns), int(np.median(questions.gpu_times))) or "info"


def _of_steps(loss: int, whole: int) -> Severity:
    return severity_of(loss, whole) or "info"
