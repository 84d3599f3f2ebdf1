"""Tell what operators of PyTorch compute and move, and what GPUs can do at most; no I/O.

May import: names.
"""
