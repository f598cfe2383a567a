"""Statistics as the API shows them."""
