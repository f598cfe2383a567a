"""Small values and helpers that every noun uses: ids, instants, durations, paths, pages."""
