"""The gateway: clients of any dialect on models of any dialect, with their reasoning kept."""
