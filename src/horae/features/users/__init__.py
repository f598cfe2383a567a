"""Users: people who sign in by password or OIDC, and their roles. It cannot be switched off."""
