"""Tell who held the memory of GPUs, of which an allocator has recorded what it did.

May import the tables and the scope of the report, no section.
"""
