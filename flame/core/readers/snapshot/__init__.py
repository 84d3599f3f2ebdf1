"""Read memory snapshots of PyTorch's allocator: pickles, of which nothing is run, and JSON.

May import: shared, model.
"""
