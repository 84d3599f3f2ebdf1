"""Check what works on this machine and say how to fix what does not (``flame doctor``).

May import: core, record.
"""
