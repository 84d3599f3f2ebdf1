"""Work out the sections of ``flame report``: tables of numbers that add up, and what is absent.

Knows no format of output. May import: allocator, analysis, attribution, compiled, efficiency,
gpu_metrics, model, names, projection, timeline.
"""
