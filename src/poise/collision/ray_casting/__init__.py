"""Ray casting against every kind of shape."""
