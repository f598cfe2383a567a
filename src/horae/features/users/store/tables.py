"""People, what they may do where, and the browsers they signed in with."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BOOL, BYTES, INT, TEXT, col, key, opt, table

users = table(
    "users",
    key("name", TEXT),
    opt("password", TEXT),  # an argon2 hash; none for who signs in elsewhere only
    col("active", BOOL, "true"),
    col("created_at", BIG),
    opt("signed_in_at", BIG),
    opt("subject", TEXT),  # who the name belongs to at the identity provider
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
    opt("members", TEXT),  # what an identity provider said; else the user's own count
    opt("network", TEXT),  # from where; none for who came by an identity provider
    Index("sign_ins_user", "user_name"),
)

# Sign-ins at an identity provider that were finished: none is finished twice.
oidc_flows = table("oidc_flows", key("state", BYTES), col("until", BIG))
