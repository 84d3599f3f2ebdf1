"""Show everything known of the selected frame in the side pane.

May import views, widgets and sampling.
"""
