"""Write the blocks of the details pane: labels and values of what was worked out.

May import the facts and labels of details, and the toolkit.
"""
