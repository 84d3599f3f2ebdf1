"""Hold a module per section on ranks: pure functions from `RankQuestions` to a `Section`."""
