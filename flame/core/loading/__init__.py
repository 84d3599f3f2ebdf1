"""Open files and make one Profile of them: workers, merging, clocks, labels.

May import sampling, readers and attribution.
"""
