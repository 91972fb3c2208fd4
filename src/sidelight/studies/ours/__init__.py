"""Benchmarks of ours that no paper has."""
