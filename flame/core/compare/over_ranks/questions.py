"""Ask the questions on ranks of each side of a comparison, each once."""

from __future__ import annotations

from flame.core.compare.comparison import Comparison
from flame.core.compare.sides import Run
from flame.core.kept_results import kept
from flame.core.projection.filters import Ranks
from flame.core.projection.selection import Selection
from flame.core.ranks.rank_sections.of_summary import questions_of
from flame.core.ranks.rank_sections.questions import RankQuestions


@kept
def both_questions(comparison: Comparison) -> tuple[RankQuestions, RankQuestions] | None:
    """Ask about the first run of both sides; None where one is no summary of ranks."""
    first = (comparison.sides.base[0], comparison.sides.new[0])
    base, new = (ask(run, comparison.selection) for run in first)
    return None if base is None or new is None else (base, new)


def ask(run: Run, selection: Selection) -> RankQuestions | None:
    """Ask about all ranks of ``run`` what passes the filters by name of a ``selection``.

    None of a trace, and of a summary without ranks.
    """
    summary = run.summary
    if not summary:
        return None
    where = tuple(one for one in run.selection(selection).where if not isinstance(one, Ranks))
    return questions_of(summary, Selection(where=where, naming=selection.naming), run.profile)
