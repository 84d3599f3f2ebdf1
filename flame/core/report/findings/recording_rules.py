"""Tell what of a recording distorts or hides what ran: the profiler's own time, CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator

from flame.core.model.frames import Kind
from flame.core.report.findings.facts import RuleFacts
from flame.core.report.findings.finding import Finding, FindingNumber
from flame.core.report.table import Place
from flame.core.timeline.idle_parts import IdleCause
from flame.core.units import format_count, format_ns, format_percent

PROFILED = 0.02
HIDDEN = 0.01
"""From which share of the GPU time on graphs traced as a whole hide kernels."""

NODES = 0.1
"""From which share of all activities on those of graphs traced node by node are told."""


def recording_rules(facts: RuleFacts) -> Iterator[Finding | None]:
    """Apply the rules on the recording to a GPU."""
    yield _profiler(facts)
    yield _graph_nodes(facts)
    yield _hidden_graphs(facts)


def _profiler(facts: RuleFacts) -> Finding | None:
    held = int(facts.budget.idle[IdleCause.PROFILER])
    if held < PROFILED * facts.window or not held:
        return None
    window = facts.idle.longest.get("profiler")
    return facts.information(
        "profiler-cost",
        "The profiler holds the program up",
        f"{facts.share(held)} passed while the GPU waited for the profiler",
        "the profiler's own part of idle time is 2 % of the window or more",
        (FindingNumber("idle while the profiler held the program up", held, "ns"),),
        window and Place(window=window),
    )


def _graph_nodes(facts: RuleFacts) -> Finding | None:
    profile = facts.scope.profile
    nodes, whole = profile.graph_nodes.activities, len(profile.activities)
    if not facts.tells("graph-nodes") or nodes < NODES * whole or not nodes:
        return None
    return facts.information(
        "graph-nodes",
        "CUDA graphs were traced node by node",
        f"{format_count(nodes)} activities ({format_percent(nodes, whole)}) are of nodes of "
        "graphs; recording them makes a graph take 30 to 60 % longer",
        "activities of nodes of CUDA graphs are 10 % of all or more",
        (FindingNumber("activities of nodes", nodes, "count"),),
    )


def _hidden_graphs(facts: RuleFacts) -> Finding | None:
    table = facts.scope.profile.activities
    hidden = int(table.duration[facts.of_kinds(Kind.GRAPH)].sum())
    whole = int(table.duration[facts.rows].sum())
    if hidden < HIDDEN * whole or not hidden:
        return None
    return facts.information(
        "hidden-graphs",
        "CUDA graphs hide their kernels",
        f"{format_ns(hidden)} ({format_percent(hidden, whole)} of GPU time) is graphs that were "
        "traced as a whole: their kernels and layers are not known",
        "graphs traced as a whole are 1 % of GPU time or more",
        (FindingNumber("graphs traced as a whole", hidden, "ns"),),
        facts.heaviest(facts.of_kinds(Kind.GRAPH)),
    )
