"""Ask the user in modal dialogs: filters, levels, export, saving.

May import views, widgets and session.
"""
