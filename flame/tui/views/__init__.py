"""Show the tree as icicle, sandwich and table.

May import session, shell and toolkit.
"""
