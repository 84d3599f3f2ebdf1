"""Compare two runs over ranks: the spread of these, who waited, the worst rank, what is alike."""
