"""Ask what many ranks did: what each of them is summed up to, and what these sums tell together.

May import: analysis, fetching, loading, model, names, projection, rank_summary, readers, report,
timeline.
"""
