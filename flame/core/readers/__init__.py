"""Decode one input format per package into RawTrace or RawStacks; knows nothing of attribution.

May import: compiled, files, model, names, operators, rank_summary, sass.
"""
