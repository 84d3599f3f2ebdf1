"""What the benchmarks share: measuring processes, a terminal, traces, goals, peers, the page."""
