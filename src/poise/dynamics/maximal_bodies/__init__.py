"""Links as rigid bodies of their own, and the coordinates of their joints."""
