"""Show header, chips, search box and pages of text around the views.

May import: session, shell, toolkit, core, options.
"""
