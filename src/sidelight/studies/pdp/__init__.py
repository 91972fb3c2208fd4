"""Paper PDP: Examples 2 to 5, Figs. 2, 4 and 5, Theorem 2, and exact curves on joints that exist."""
