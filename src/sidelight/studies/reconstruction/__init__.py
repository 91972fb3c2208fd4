"""Paper Reconstruction: Figs. 2 to 5, Theorems 1 and 2."""
