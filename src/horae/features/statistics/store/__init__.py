"""The tables of statistics, and the scripts that read and change them."""
