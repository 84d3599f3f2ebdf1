"""Answer questions to a tree: totals per frame, percentiles, callers and callees, search, wording.

May import projection and what is below it.
"""
