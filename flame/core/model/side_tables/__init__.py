"""Hold what a trace records beside GPU work, ranges and API calls, read when asked for; no I/O.

May import: no other package.
"""
