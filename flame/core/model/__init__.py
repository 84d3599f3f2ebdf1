"""Hold the data that everybody passes on: columns of profiles, frames, stacks and trees; no I/O.

May import: names, operators.
"""
