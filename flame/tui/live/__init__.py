"""Show a recording that grows.

May import tui.main and what is below it.
"""
