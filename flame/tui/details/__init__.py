"""Show everything known of the selected frame in the side pane.

May import: sampling, session, shell, toolkit, core.
"""
