"""Child processes: starting, guarding, confining and ending them."""
