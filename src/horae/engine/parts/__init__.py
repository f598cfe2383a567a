"""The parts of a server. Each is complete when its constructor returns, and is given the parts that it uses."""
