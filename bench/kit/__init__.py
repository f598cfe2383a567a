"""The shared parts of benches: options, processes, stores, load, the bounds of figures and the form of results."""
