"""Tables and figures that compare: each a function from data to a result that can be drawn."""
