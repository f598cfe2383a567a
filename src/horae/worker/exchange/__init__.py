"""The exchanges of a session with the servers: channels, data to send, and delivery."""
