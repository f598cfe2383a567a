"""Users: people who sign in by a password or by OIDC, and their roles. This feature cannot be switched off."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="users",
    about="People who sign in by a password or by OIDC, and their roles.",
    holdings="horae.features.users.store.users:HOLDINGS",
    sweep="horae.features.users.store.users:sweep",
    tables="horae.features.users.store.tables",
    required=True,
    part="horae.features.users.part:UsersPart",
    routes=(
        Routes("horae.features.users.sign_in_routes", after="me"),
        Routes("horae.features.users.routes", after="keys"),
    ),
    users="horae.features.users.part:sign_ins",
    commands=(
        Command(
            "users",
            "horae.features.users.cli:users",
            "Manage users and their permissions.",
            section="Operate",
            after="secrets",
        ),
    ),
)
