"""Decode one input format per package into RawTrace or RawStacks; knows nothing of attribution.

May import sass and model.
"""
