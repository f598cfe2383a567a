"""What submissions of a job share: the execution that a key stands for."""

from horae.store.schema.columns import BIG, ID, INT, TEXT, col, key, opt, partial, table

meetings = table(
    "meetings",
    key("job", ID),
    key("kind", TEXT),  # unique, debounce, batch or cache
    key("key", TEXT),
    col("execution", ID),
    col("opened_at", BIG),
    opt("until", BIG),  # of a key that is given for a span; others hold as long as their execution stands so
    opt("span", BIG),  # how long a result is remembered
    col("count", INT),  # submissions that the execution has taken in
    partial("meetings_until", "until", where="until IS NOT NULL"),
    small=True,
)
