"""Show the report: what to do first, and its sections, each worked out in the background.

May import: details, dialogs, session, toolkit, views, core, exporters, reporting.
"""
