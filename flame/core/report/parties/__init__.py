"""Tell who did what: processes, GPUs, threads, ranks, and how they communicated.

May import the tables and the scope of the report, and what other sections work out.
"""
