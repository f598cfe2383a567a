"""The web UI: plain files served as they are, without a build step. It uses only /api/v1."""
