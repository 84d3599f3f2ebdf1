"""Show what ranks have in common, where they are apart, and lead to the one that is the worst.

May import: details, session, shell, toolkit, views, widgets, core, options.
"""
