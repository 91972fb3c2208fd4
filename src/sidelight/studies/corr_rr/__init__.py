"""Paper Corr-RR: Table 1 and Figs. 2 to 14, plain SMP and ours beside them, and the amplified budget."""
