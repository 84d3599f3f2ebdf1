"""Show on the main screen what has changed from one side of a comparison to the other."""
