"""Nsight Compute: reports, and their source page as CSV, which has PC samples per instruction."""
