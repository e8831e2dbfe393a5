"""Benchmarks: what is claimed is measured here, on the user's own machine. Never collected by pytest."""
