"""Answer questions to a tree or trace: totals, percentiles, callers, search, how busy GPUs were.

May import: attribution, compiled, gpu_metrics, model, names, projection, rank_summary, timeline.
"""
