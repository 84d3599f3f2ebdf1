"""Measure what several sections and rules need: columns, each worked out from a `Scope`.

May import the tables and the scope of the report, no section.
"""
