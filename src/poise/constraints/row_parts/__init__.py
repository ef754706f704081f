"""Parts: the formulas that rows are made of."""
