"""What can be left out of a server, one folder each with all its layers."""
