"""Compare two runs over ranks: the spread of these, who waited, the worst rank, what is alike.

May import: model, projection, rank_summary, ranks.
"""
