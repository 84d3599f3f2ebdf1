"""Provide lines, text, colours, dialogs and background work that know no trace.

May import: console, core, options.
"""
