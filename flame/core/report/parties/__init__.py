"""Tell who did what: processes, GPUs, threads, ranks, and how they communicated.

May import: host, measures, sections, analysis, model, names, timeline.
"""
