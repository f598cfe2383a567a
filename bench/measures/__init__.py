"""One module per bench, with a command of the same name."""
