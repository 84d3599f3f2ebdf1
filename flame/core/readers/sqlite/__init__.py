"""Read columns of SQLite databases, by pages or through the sqlite3 module.

Knows nothing of the formats stored in them. May import: compiled.
"""
