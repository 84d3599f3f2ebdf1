"""Hold a module per section: pure functions from a `Scope` to a `Section`.

May import the tables and the scope of the report, no other section.
"""
