"""The studies of each paper: what its text publishes, and how ours is read from the works behind it."""
