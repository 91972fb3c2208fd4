"""What all other attributes of a release reveal about a secret together."""
