"""Lay out the main screen and run what its keys do.

May import every area of the screen.
"""
