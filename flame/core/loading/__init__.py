"""Open files and make one Profile of them: workers, merging, clocks, labels.

May import: allocator, analysis, attribution, efficiency, fetching, model, names, operators,
projection, rank_summary, readers, reopening, sampling.
"""
