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
    opt("subject", TEXT),  # the id of the user at the identity provider
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
    key("hash", BYTES),  # the hash of the cookie
    col("user_name", TEXT),
    col("csrf", TEXT),
    col("created_at", BIG),
    col("seen_at", BIG),
    col("until", BIG),
    opt("members", TEXT),  # memberships that an identity provider determined; NULL if those in `members` apply
    opt("network", TEXT),  # the network of the browser; NULL for a sign-in at an identity provider
    Index("sign_ins_user", "user_name"),
)

# The hashes of the states of finished sign-ins at an identity provider, so that none is finished twice.
oidc_flows = table("oidc_flows", key("state", BYTES), col("until", BIG))
