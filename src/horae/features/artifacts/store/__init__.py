"""The tables of artifacts, and the scripts that read and change them."""
