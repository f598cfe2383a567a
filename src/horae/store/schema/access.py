"""Who may come in: keys, sign-ins and cookies."""

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
)

sign_in_codes = table("sign_in_codes", key("hash", BYTES), col("namespace", INT), col("role", TEXT), col("until", BIG))

cookies = table(
    "cookies", key("hash", BYTES), col("key_id", TEXT), col("csrf", TEXT), col("created_at", BIG), col("until", BIG)
)
