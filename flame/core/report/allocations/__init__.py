"""Tell who held the memory of GPUs, of which an allocator has recorded what it did.

May import: allocator, analysis, model, projection.
"""
