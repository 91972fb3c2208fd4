"""Attacks on a release, each beside its control, its baseline and the limit of what is possible."""
