"""Match the collectives of ranks, and tell who waited, for whom, and how far clocks are apart.

May import: model, names, rank_summary, report, timeline.
"""
