"""The GPU flame graph in your terminal."""
