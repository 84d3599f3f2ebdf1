"""Hold what an allocator of GPU memory did, and what it held at the end; no I/O.

May import: side_tables.
"""
