"""Operations on users: passwords, sessions of browsers, and sign-in by OIDC."""
