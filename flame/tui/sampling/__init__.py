"""Prepare PC samples for display.

May import: session, toolkit, core.
"""
