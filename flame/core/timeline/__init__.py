"""Answer what ran when: lanes of intervals, and their share of each cell of the screen.

May import projection and what is below it.
"""
