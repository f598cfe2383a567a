"""Keys, sign-ins, cookies, and sealed secrets of namespaces."""

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
    col("permissions", TEXT),  # this and the next two columns are JSON lists
    col("queues", TEXT),
    col("jobs", TEXT),
    opt("made_by", TEXT),  # the key that made it; the key of a browser ends with the key of its sign-in link
    opt("replaced_by", TEXT),  # its successor after a rotation; it ends with their overlap
    opt("rate", TEXT),  # the limit of its requests
)

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
    col("version", INT),  # the number of values so far
    col("sealed", BYTES),
    col("created_at", BIG),
    col("updated_at", BIG),
)
