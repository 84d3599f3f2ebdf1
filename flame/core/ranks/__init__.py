"""Compare the ranks of a job by their summaries: who waits, who is late, where they differ."""
