"""The parts of a server: each is whole when its constructor returns, and is given the parts that it uses."""
