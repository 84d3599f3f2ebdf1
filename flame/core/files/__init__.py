"""Write files whole or not at all, and keep what is derived from files in a bounded cache.

Everything flame writes goes through here: temporary files with names of their own beside the
target, readable by nobody who may not read the result, on disk before they get the target's name.

May import: no other package.
"""
