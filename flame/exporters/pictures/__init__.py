"""Draw stack trees for a browser: one file that loads nothing.

May import: tables, core.
"""
