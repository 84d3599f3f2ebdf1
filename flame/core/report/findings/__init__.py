"""Judge what the sections of a report say: what to do first, and how much that can save at most.

A module per group of rules. May import: allocations, host, measures, parties, program, sections,
allocator, analysis, efficiency, model, names, projection, timeline.
"""
