"""Workers as the server sees them: sessions, the protocol, dealing work out, scaling."""
