"""Call the compiled functions of `csrc/`, each of which does what numpy does beside it, or refuses.

May import: no other package.
"""
