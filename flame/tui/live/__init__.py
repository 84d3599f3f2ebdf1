"""Show a recording that grows.

May import: dialogs, main, session, shell, toolkit, widgets, core, exporters, options.
"""
