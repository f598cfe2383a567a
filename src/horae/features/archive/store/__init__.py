"""The tables of the archive, and the scripts that read and change them."""
