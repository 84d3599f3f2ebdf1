"""Turn recorded names into names that people read: CUDA, NVTX, renames.

May import: no other package.
"""
