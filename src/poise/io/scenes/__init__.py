"""Scene files: YAML that says what a scene holds, in the words of the Python interface. See docs/scenes.md."""
