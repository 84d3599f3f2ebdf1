"""Show the tree as icicle, sandwich and table.

May import: session, shell, toolkit, core, options.
"""
