"""Read columns of SQLite databases, by pages or through the sqlite3 module.

Knows nothing of the formats stored in them. May import: compiled.
"""

MAGIC = b"SQLite format 3\0"
"""What files of SQLite begin with."""
