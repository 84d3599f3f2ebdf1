"""Merge the profiles of several files into one.

May import model, attribution, analysis, efficiency, sampling and allocator.
"""
