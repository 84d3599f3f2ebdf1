"""Show traces in the terminal app: the only package that imports Textual.

May import: attach, console, core, exporters, options, record, reporting.
"""
