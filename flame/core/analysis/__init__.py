"""Answer questions to a tree or trace: totals, percentiles, callers, search, how busy GPUs were.

May import timeline and what is below it.
"""
