"""Workers as the server sees them: sessions, the protocol, the distribution of work, and scaling."""
