"""Finding running processes, and getting at what they record."""
