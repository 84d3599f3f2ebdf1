"""Merge the profiles of several files into one.

May import: allocator, analysis, attribution, efficiency, model, sampling.
"""
