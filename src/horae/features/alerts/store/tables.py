"""The tables of alert rules, channels, alerts and notices."""

from sqlalchemy import Index

from horae.store.schema.columns import BIG, BYTES, ID, INT, TEXT, col, key, opt, partial, table

alert_rules = table(
    "alert_rules",
    key("namespace", INT),
    key("name", TEXT),
    col("spec", TEXT),
    col("state", TEXT),  # active or paused
    col("revision", INT),  # grows with each change
    col("pace", BIG, "0"),  # the state of its rate limit of notices
    col("unsaid", INT, "0"),  # alerts that opened and ended without a notice, since the last notice about new alerts
    col("created_at", BIG),
    col("updated_at", BIG),
    small=True,
)

alert_channels = table(
    "alert_channels",
    key("namespace", INT),
    key("name", TEXT),
    col("spec", TEXT),
    col("sealed", BYTES),  # its secret fields
    col("shown", TEXT),  # its receivers without secrets
    col("revision", INT),
    col("created_at", BIG),
    col("updated_at", BIG),
)

alerts = table(
    "alerts",
    key("id", ID),
    col("namespace", INT),
    col("rule", TEXT),
    col("kind", TEXT),
    col("severity", TEXT),
    col("subject", TEXT),
    opt("job", ID),
    opt("execution", ID),  # an execution that shows the problem
    col("state", TEXT),  # firing or recovered
    col("message", TEXT),
    col("since", BIG),
    col("last_at", BIG),
    opt("recovered_at", BIG),
    col("count", INT),
    opt("notified_at", BIG),  # the last notice; NULL if the rate limit had no room for one yet
    opt("acknowledged_at", BIG),
    col("acknowledged_by", TEXT, "''"),
    # Guarantees that two servers that evaluate a rule at the same time open only one alert for a subject.
    partial("alerts_open", "namespace", "rule", "subject", where="state = 'firing'", unique=True),
    partial("alerts_firing", "namespace", "id", where="state = 'firing'"),
    partial("alerts_over", "recovered_at", where="recovered_at IS NOT NULL"),
    Index("alerts_namespace", "namespace", "id"),
    Index("alerts_job", "job", "id"),
)

alert_notices = table(
    "alert_notices",
    key("id", ID),
    # The notice that is delivered: its own id, or the first of its group. Receivers detect repeats by this id.
    col("letter", ID),
    col("namespace", INT),
    opt("alert", ID),  # NULL for a test
    col("rule", TEXT),
    col("channel", TEXT),
    col("kind", TEXT),  # firing, reminder, recovered, forgotten or test
    col("content", TEXT),  # the content of the whole group; empty in all but its first notice
    col("state", TEXT),  # pending, delivered or failed; grouped: the first notice of the group has the state
    col("attempts", INT),  # claims so far; also identifies the claim, so that a report about an earlier one is ignored
    col("next_at", BIG),  # when it may be claimed: at the next try, or at the end of the present claim
    col("last_error", TEXT, "''"),
    col("created_at", BIG),
    opt("done_at", BIG),
    partial("alert_notices_due", "next_at", where="state = 'pending'"),
    partial("alert_notices_channel", "namespace", "channel", "next_at", "id", where="state = 'pending'"),
    partial("alert_notices_done", "done_at", where="done_at IS NOT NULL"),
    Index("alert_notices_alert", "alert", "id"),
    Index("alert_notices_letter", "letter"),
)
