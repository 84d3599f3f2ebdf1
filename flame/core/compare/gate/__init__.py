"""Decide a condition on a comparison, as `--fail-on` states it, and how sure that is.

May import: kept, over_ranks, sections, analysis, model, projection, rank_summary, ranks, report.
"""
