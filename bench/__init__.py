"""Speed, measured as ratios against a peer and a good numpy version in the same run: `make bench`."""
