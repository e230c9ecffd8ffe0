"""Tools that mull brings along for work on a project's files, and what every tool must offer."""
