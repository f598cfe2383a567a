"""Commands for the installation: start, configure, check, measure and move it."""
