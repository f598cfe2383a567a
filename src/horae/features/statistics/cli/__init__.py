"""The commands `overview` and `jobs stats`."""
