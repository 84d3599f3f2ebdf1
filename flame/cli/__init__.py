"""Parse the command line and run one command per module: arguments in, exit code out.

Each command has `add_parser` and `run`, and imports what it needs when it runs. May import
everything below it; nobody imports cli.
"""
