"""Hold the sums of one rank or of many, named by content, so that any order of merging is one.

May import: model.
"""
