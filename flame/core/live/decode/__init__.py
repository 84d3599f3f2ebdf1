"""Decode the rows that a growing recording has gained since the last look.

May import: model, readers.
"""
