"""Looking at what Poise computes: plots and pictures."""
