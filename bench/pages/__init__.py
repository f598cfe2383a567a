"""The pages with figures, written by `make bench`, `make scale` and `make bench-policies`."""
