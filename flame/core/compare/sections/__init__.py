"""Hold a module per section of `flame diff`: pure functions from a `Comparison` to a `Section`.

May import: kept, noise, over_ranks, model, projection, rank_summary, ranks, report.
"""
