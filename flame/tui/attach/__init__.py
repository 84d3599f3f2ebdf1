"""Let the user pick what to attach to.

May import: live, shell, toolkit, attach, core, options, record.
"""
