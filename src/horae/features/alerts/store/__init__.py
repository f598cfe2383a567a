"""The tables of alerts, and the scripts that read and write them."""
