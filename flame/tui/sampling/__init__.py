"""Prepare PC samples for display.

May import session and toolkit.
"""
