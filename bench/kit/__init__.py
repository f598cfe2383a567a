"""The parts that benches share: options, processes, stores, load, the bounds of figures and the form of results."""
