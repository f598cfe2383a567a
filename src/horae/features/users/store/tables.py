"""The tables of users, their memberships, and the sessions of their browsers."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, BYTES, INT, TEXT, col, key, opt, table

users = table(
    "users",
    key("name", TEXT),
    opt("password", TEXT),  # an argon2 hash; NULL for users of an identity provider
    col("active", BOOL, "true"),
    col("created_at", BIG),
    opt("signed_in_at", BIG),
    opt("subject", TEXT),  # the owner of the name at the identity provider
)

members = table(
    "members",
    key("user_name", TEXT),
    key("namespace", INT),
    col("role", TEXT),
    col("permissions", TEXT),  # a JSON list
    Index("members_namespace", "namespace", "user_name"),
)

sign_ins = table(
    "sign_ins",
    key("hash", BYTES),  # of the cookie
    col("user_name", TEXT),
    col("csrf", TEXT),
    col("created_at", BIG),
    col("seen_at", BIG),
    col("until", BIG),
    opt("members", TEXT),  # memberships from an identity provider; NULL: those of the user
    opt("network", TEXT),  # the network of the browser; NULL for a sign-in at an identity provider
    Index("sign_ins_user", "user_name"),
)

# Finished sign-ins at an identity provider, so that no sign-in is finished twice.
oidc_flows = table("oidc_flows", key("state", BYTES), col("until", BIG))
