"""Read columns of SQLite databases, by pages or through the sqlite3 module.

Imports nothing of the formats stored in them.
"""
