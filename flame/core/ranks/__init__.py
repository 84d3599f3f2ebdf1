"""Ask what many ranks did: what each of them is summed up to, and what these sums tell together."""
