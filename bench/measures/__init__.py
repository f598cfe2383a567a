"""One module per bench, each with the command of its name."""
