"""Add up the rows of a growing recording per window, group and frame.

May import: decode, model, readers, sampling, sass.
"""
