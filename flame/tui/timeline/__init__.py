"""Show what ran when, and let the user select a time window.

May import: session, toolkit, views, core.
"""
