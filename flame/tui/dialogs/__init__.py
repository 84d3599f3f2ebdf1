"""Ask the user in modal dialogs: filters, levels, export, saving.

May import: session, toolkit, views, widgets, core, exporters.
"""
