"""Paper CLLDP: Tables 1 and 4, Figs. 3 to 6, with controls and our own lines beside the published ones."""
