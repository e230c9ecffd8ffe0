"""The terminal interface. Drawing is pure: text in, styled lines (`mull.tui.text.lines`) out."""
