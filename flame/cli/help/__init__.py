"""Hold what `--help` and the man pages say besides options: examples, and how help is laid out.

May import: no other package.
"""
