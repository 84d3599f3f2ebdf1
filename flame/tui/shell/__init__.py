"""Start the app and bind keys to commands, the same for all screens.

May import: toolkit, console, core, options.
"""
