"""Compare two sides of one or more runs: align their trees, scale them, judge what changed.

Nothing else in `flame.core` imports it. May import: analysis, compiled, model, names, projection,
rank_summary, ranks, readers, report, sampling, timeline.
"""
