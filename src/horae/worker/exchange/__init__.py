"""What a session exchanges with the servers: its channels, the data to send, and the delivery."""
