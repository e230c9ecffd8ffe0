"""The built-in tools for work on a project's files, and what every tool must offer."""
