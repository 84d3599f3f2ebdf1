"""What the benchmarks share: measuring processes, telling figures, goals, peers, the page."""
