"""Hold a module per section of `flame diff`: pure functions from a `Comparison` to a `Section`."""
