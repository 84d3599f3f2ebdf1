"""Programs that the checks run: each launches what it says, and says it as JSON."""
