"""Routes of the server itself: health, metrics, the stream, backups and the UI's files."""
