"""Commands for the installation itself: start, configure, check, measure and move it."""
