"""Hold what threads of the host recorded, as they did: every API call, marks, states; no I/O.

May import: no other package.
"""
