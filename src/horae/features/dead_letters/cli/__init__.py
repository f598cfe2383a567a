"""The commands of dead letters and replays."""
