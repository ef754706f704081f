"""Files in and out: what others wrote becomes a Scene."""
