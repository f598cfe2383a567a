"""The operations on backfills, and the service that processes them."""
