"""Paper CPL: Tables I to III, Figs. 4 to 8, eq. (6), and benchmarks of ours on calibration."""
