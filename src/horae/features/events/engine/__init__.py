"""Taking events, webhooks with their secrets, and watching places."""
