"""Read traces, build the unified stack tree and answer questions to it.

Knows no terminal and no command line. May import: no other package.
"""
