"""Let the user pick what to attach to.

May import tui.live and what is below it.
"""
