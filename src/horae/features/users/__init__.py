"""Users: people who sign in by password or OIDC, and their roles. It cannot be switched off."""

from horae.feature import Feature

FEATURE = Feature(
    name="users",
    about="People who sign in by password or OIDC, and their roles.",
    required=True,
    part="horae.features.users.part:UsersPart",
    users="horae.features.users.part:sign_ins",
)
