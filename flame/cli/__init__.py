"""Parse the command line and run one command per module: arguments in, exit code out.

May import everything below it.
"""
