"""Write the blocks of the details pane: labels and values of what was worked out.

May import: sampling, shell, toolkit, core.
"""
