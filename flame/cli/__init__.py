"""Parse the command line and run one command per module: arguments in, exit code out.

Each command has `add_options` and `run`, and imports what it needs when it runs. Nobody imports
cli. May import: attach, console, core, doctor, engines, exporters, mcp, options, record, reporting,
tui, web.
"""
