"""Serve the app to a browser on this machine, to nobody but who knows the address.

Runs `flame` in processes of its own. May import: core.
"""
