"""The tables and scripts of dead letters and replays."""
