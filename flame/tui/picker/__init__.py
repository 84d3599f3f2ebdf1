"""Let the user pick the traces to open.

May import tui.main and what is below it.
"""
