"""Project a Profile to a StackTree: filter, lay out levels, split by samples, build, prune.

May import: compiled, model, names.
"""
