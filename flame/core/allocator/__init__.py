"""Tell who held the GPU's memory, from an allocator's history: allocations, peak, parts, growth.

May import: model.
"""
