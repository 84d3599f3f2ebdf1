"""Read traces, build the unified stack tree and answer questions to it.

Knows no terminal and no command line; imports nothing of flame but itself.
"""
