"""Hold a module per section on ranks, and what these are worked out from: `RankQuestions`.

May import: communication, model, names, projection, rank_summary, report.
"""
