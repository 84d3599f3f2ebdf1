"""Write the sections of a report: as text for people, as JSON, Markdown, CSV, HTML.

May import: console, core, exporters, options.
"""
