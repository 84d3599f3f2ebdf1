"""Average samples of GPU metrics over any times: of kernels, ranges, windows, cells.

May import: model.
"""
