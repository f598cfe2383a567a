"""Users, passwords, sessions of browsers, and signing in by OIDC."""
