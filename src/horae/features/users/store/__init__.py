"""The tables of users, and the scripts that read and change them."""
