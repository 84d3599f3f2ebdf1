"""Provide lines, text, colours, dialogs and background work that know no trace.

Imports nothing else of tui.
"""
