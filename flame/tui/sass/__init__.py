"""Show the instructions of a kernel with their samples.

May import: dialogs, sampling, session, shell, toolkit, widgets, core.
"""
