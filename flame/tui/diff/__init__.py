"""Show on the main screen what has changed from one side of a comparison to the other.

May import: details, main, report, sampling, sass, session, shell, timeline, toolkit, views,
widgets, core, options.
"""
