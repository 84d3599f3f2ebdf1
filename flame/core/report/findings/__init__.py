"""Judge what the sections of a report say: what to do first, and how much that can save at most.

A module per group of rules. May import sections and the scope of the report.
"""
