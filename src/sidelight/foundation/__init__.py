"""Errors, files, progress, optional extras and randomness: nothing here knows about privacy."""
