"""Turn what the user asked for into objects and back: options, configuration file, saved place.

May import: core.
"""
