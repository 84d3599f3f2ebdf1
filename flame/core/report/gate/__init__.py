"""Decide a condition on the numbers of a report, as `--fail-on` states it.

May import: allocations, findings, measures, program, sections, allocator, model, names, projection.
"""
