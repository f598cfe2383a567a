"""The tables and scripts of users."""
