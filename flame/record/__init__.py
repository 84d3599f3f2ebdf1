"""``flame record``: run a command with the injection library in it, and say what was recorded."""
