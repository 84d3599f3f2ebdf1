"""Make a Profile of a RawTrace: join launches, nest ranges, follow CUDA graphs, name the gaps.

May import: allocator, compiled, model.
"""
