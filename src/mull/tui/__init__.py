"""The terminal interface. Drawing is pure: text in, lines of styled text out (`mull.tui.lines`)."""
