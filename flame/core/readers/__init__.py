"""One file or folder per input format."""
