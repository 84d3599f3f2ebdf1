"""Show what ran when, and let the user select a time window.

May import views, widgets and session.
"""
