"""Measure what threads of the host did: calls, the GIL, garbage collection, the operating system.

May import the measures, the tables and the scope of the report, no section.
"""
