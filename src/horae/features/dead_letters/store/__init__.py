"""The tables of replays, and the scripts that read dead letters and change replays."""
