"""The tables of alerts, rules, channels and notices, and the scripts that read and write them."""
