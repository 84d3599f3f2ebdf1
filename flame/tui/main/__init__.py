"""Lay out the main screen and run what its keys do.

May import: details, dialogs, ranks, report, sampling, sass, session, shell, timeline, toolkit,
views, widgets, core, options.
"""
