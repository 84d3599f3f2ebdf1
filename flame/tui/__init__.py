"""The terminal app: the only folder that knows Textual."""
