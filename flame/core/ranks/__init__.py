"""Tell ranks apart: what each took, which were late and why."""
