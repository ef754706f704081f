"""Scene files: YAML with the names of the Python interface. See docs/scenes.md."""
