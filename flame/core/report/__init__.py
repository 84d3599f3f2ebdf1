"""Work out the sections of ``flame report``: tables of numbers that add up, and what is absent.

May import analysis and what is below it. Knows no format of output.
"""
