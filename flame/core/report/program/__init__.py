"""Tell what the program did: iterations, phases, layers, experts.

May import the tables and the scope of the report, and what other sections work out.
"""
