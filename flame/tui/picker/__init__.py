"""Let the user pick the traces to open.

May import: main, shell, toolkit, widgets, core, options.
"""
