"""Tables of API keys, sign-in codes, enrolments, cookies, and the encrypted secrets of namespaces."""

from horae.store.schema.columns import BIG, BYTES, INT, TEXT, col, key, opt, table

keys = table(
    "keys",
    key("id", TEXT),
    col("hash", BYTES),
    col("name", TEXT),
    col("namespace", INT),
    col("role", TEXT),
    col("created_at", BIG),
    opt("expires_at", BIG),
    opt("last_used_at", BIG),
    opt("revoked_at", BIG),
    col("permissions", TEXT),  # permissions, queues and jobs are JSON lists
    col("queues", TEXT),
    col("jobs", TEXT),
    # the key that created this one; a browser's key ends when the key that created its sign-in link ends
    opt("made_by", TEXT),
    opt("replaced_by", TEXT),  # the successor after a rotation; both are valid until this key's expires_at
    opt("rate", TEXT),  # the limit of the rate of requests with this key
)

# Single-use codes of sign-in links, which a browser exchanges for a cookie.
sign_in_codes = table(
    "sign_in_codes",
    key("hash", BYTES),
    col("namespace", INT),
    col("role", TEXT),
    col("until", BIG),
    col("permissions", TEXT),
    col("queues", TEXT),
    col("jobs", TEXT),
    opt("made_by", TEXT),
)

# Single-use tokens that workers exchange for keys.
enrolments = table(
    "enrolments",
    key("hash", BYTES),
    col("namespace", INT),
    col("role", TEXT),
    col("permissions", TEXT),
    col("queues", TEXT),
    col("jobs", TEXT),
    opt("made_by", TEXT),
    col("until", BIG),
)

cookies = table(
    "cookies", key("hash", BYTES), col("key_id", TEXT), col("csrf", TEXT), col("created_at", BIG), col("until", BIG)
)


secrets = table(
    "secrets",
    key("namespace", INT),
    key("name", TEXT),
    col("version", INT),  # how many values the secret has had
    col("sealed", BYTES),  # the encrypted value
    col("created_at", BIG),
    col("updated_at", BIG),
)
