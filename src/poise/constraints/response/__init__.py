"""The response of a tree to its rows: the Delassus matrix and row velocities."""
