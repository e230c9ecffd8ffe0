"""The prompt that is there at once, until the editor is loaded."""
