CREATE TABLE affinities (
    job UUID NOT NULL,
    "key" TEXT NOT NULL,
    worker TEXT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (job, "key")
)
 WITHOUT ROWID;

CREATE INDEX affinities_until ON affinities (until);

CREATE TABLE alert_channels (
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,
    sealed BLOB NOT NULL,
    shown TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE alert_notices (
    id UUID NOT NULL,
    letter UUID NOT NULL,
    namespace INTEGER NOT NULL,
    alert UUID,
    rule TEXT NOT NULL,
    channel TEXT NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_at BIGINT NOT NULL,
    last_error TEXT DEFAULT '' NOT NULL,
    created_at BIGINT NOT NULL,
    done_at BIGINT,
    PRIMARY KEY (id)
);

CREATE INDEX alert_notices_alert ON alert_notices (alert, id);

CREATE INDEX alert_notices_channel ON alert_notices (namespace, channel, next_at, id) WHERE state = 'pending';

CREATE INDEX alert_notices_done ON alert_notices (done_at) WHERE done_at IS NOT NULL;

CREATE INDEX alert_notices_due ON alert_notices (next_at) WHERE state = 'pending';

CREATE INDEX alert_notices_letter ON alert_notices (letter);

CREATE TABLE alert_rules (
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,
    state TEXT NOT NULL,
    revision INTEGER NOT NULL,
    pace BIGINT DEFAULT 0 NOT NULL,
    unsaid INTEGER DEFAULT 0 NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, name)
)
 WITHOUT ROWID;

CREATE TABLE alerts (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    rule TEXT NOT NULL,
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    subject TEXT NOT NULL,
    job UUID,
    execution UUID,
    state TEXT NOT NULL,
    message TEXT NOT NULL,
    since BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    recovered_at BIGINT,
    count INTEGER NOT NULL,
    notified_at BIGINT,
    acknowledged_at BIGINT,
    acknowledged_by TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX alerts_firing ON alerts (namespace, id) WHERE state = 'firing';

CREATE INDEX alerts_job ON alerts (job, id);

CREATE INDEX alerts_namespace ON alerts (namespace, id);

CREATE UNIQUE INDEX alerts_open ON alerts (namespace, rule, subject) WHERE state = 'firing';

CREATE INDEX alerts_over ON alerts (recovered_at) WHERE recovered_at IS NOT NULL;

CREATE TABLE archive_jobs (
    archive UUID NOT NULL,
    job UUID NOT NULL,
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    outcomes INTEGER NOT NULL,
    PRIMARY KEY (archive, job)
)
 WITHOUT ROWID;

CREATE INDEX archive_jobs_name ON archive_jobs (namespace, name, archive);

CREATE TABLE archives (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    executions INTEGER NOT NULL,
    outcomes INTEGER NOT NULL,
    jobs INTEGER NOT NULL,
    bytes BIGINT NOT NULL,
    location TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX archives_namespace ON archives (namespace, id);

CREATE TABLE artifacts (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    name TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    size BIGINT NOT NULL,
    type TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    location TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item, name)
);

CREATE TABLE attempts (
    parcel UUID NOT NULL,
    attempt INTEGER NOT NULL,
    lo INTEGER NOT NULL,
    hi INTEGER NOT NULL,
    worker TEXT NOT NULL,
    session UUID NOT NULL,
    outcome TEXT NOT NULL,
    kind TEXT DEFAULT '' NOT NULL,
    started_at BIGINT,
    ended_at BIGINT NOT NULL,
    exit_code INTEGER,
    error TEXT,
    PRIMARY KEY (parcel, attempt, lo)
);

CREATE TABLE audit_head (
    id INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    hash BLOB NOT NULL,
    signature BLOB NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE audit_log (
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    namespace INTEGER NOT NULL,
    actor TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL,
    begun BIGINT,
    hash BLOB NOT NULL,
    PRIMARY KEY (seq)
);

CREATE INDEX audit_log_actor ON audit_log (namespace, actor, seq);

CREATE INDEX audit_log_begun ON audit_log (begun) WHERE begun IS NOT NULL;

CREATE INDEX audit_log_namespace ON audit_log (namespace, seq);

CREATE INDEX audit_log_target ON audit_log (namespace, target, seq);

CREATE TABLE awaits (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    step TEXT NOT NULL,
    name TEXT NOT NULL,
    filter TEXT,
    deadline BIGINT,
    at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item, step)
)
 WITHOUT ROWID;

CREATE TABLE backfill_runs (
    backfill UUID NOT NULL,
    at BIGINT NOT NULL,
    trigger_id UUID NOT NULL,
    execution UUID NOT NULL,
    forced BOOLEAN NOT NULL,
    outcome TEXT,
    PRIMARY KEY (backfill, at, trigger_id)
)
 WITHOUT ROWID;

CREATE INDEX backfill_runs_open ON backfill_runs (backfill) WHERE outcome IS NULL;

CREATE TABLE backfills (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    job UUID NOT NULL,
    trigger_name TEXT,
    from_at BIGINT NOT NULL,
    to_at BIGINT NOT NULL,
    newest_first BOOLEAN NOT NULL,
    force BOOLEAN NOT NULL,
    max_concurrent INTEGER NOT NULL,
    priority SMALLINT,
    params TEXT,
    state TEXT NOT NULL,
    cursor_at BIGINT,
    cursor_name TEXT,
    total BIGINT NOT NULL,
    already BIGINT NOT NULL,
    unknown BIGINT NOT NULL,
    started BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    ended BIGINT NOT NULL,
    first_at BIGINT,
    last_at BIGINT,
    known_from BIGINT NOT NULL,
    note TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    completed_at BIGINT,
    PRIMARY KEY (id)
);

CREATE INDEX backfills_completed ON backfills (completed_at) WHERE completed_at IS NOT NULL;

CREATE INDEX backfills_namespace ON backfills (namespace, id);

CREATE INDEX backfills_open ON backfills (id) WHERE completed_at IS NULL;

CREATE TABLE blobs (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (parcel, item)
);

CREATE TABLE calendar_triggers (
    namespace INTEGER NOT NULL,
    calendar TEXT NOT NULL,
    trigger_id UUID NOT NULL,
    outside TEXT NOT NULL,
    PRIMARY KEY (namespace, calendar, trigger_id)
)
 WITHOUT ROWID;

CREATE INDEX calendar_triggers_trigger ON calendar_triggers (trigger_id);

CREATE TABLE calendars (
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    definition TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    valid_from BIGINT NOT NULL,
    valid_to BIGINT,
    PRIMARY KEY (namespace, name, version)
);

CREATE UNIQUE INDEX calendars_present ON calendars (namespace, name) WHERE valid_to IS NULL;

CREATE TABLE circuit_changes (
    job UUID NOT NULL,
    "key" TEXT NOT NULL,
    era INTEGER NOT NULL,
    at BIGINT NOT NULL,
    state TEXT NOT NULL,
    forced BOOLEAN NOT NULL,
    cause TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (job, "key", era)
)
 WITHOUT ROWID;

CREATE INDEX circuit_changes_at ON circuit_changes (at);

CREATE TABLE circuit_counts (
    job UUID NOT NULL,
    "key" TEXT NOT NULL,
    era INTEGER NOT NULL,
    bucket BIGINT NOT NULL,
    server UUID NOT NULL,
    ok INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (job, "key", era, bucket, server)
)
 WITHOUT ROWID;

CREATE INDEX circuit_counts_bucket ON circuit_counts (bucket);

CREATE TABLE circuits (
    job UUID NOT NULL,
    "key" TEXT NOT NULL,
    state TEXT NOT NULL,
    era INTEGER NOT NULL,
    since BIGINT NOT NULL,
    until_at BIGINT,
    forced BOOLEAN NOT NULL,
    cause TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    probes TEXT NOT NULL,
    PRIMARY KEY (job, "key")
)
 WITHOUT ROWID;

CREATE INDEX circuits_shut ON circuits (job, "key") WHERE state <> 'closed';

CREATE TABLE cookies (
    hash BLOB NOT NULL,
    key_id TEXT NOT NULL,
    csrf TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (hash)
);

CREATE TABLE dependencies (
    job UUID NOT NULL,
    upstream UUID NOT NULL,
    condition TEXT DEFAULT 'success' NOT NULL,
    unused INTEGER DEFAULT 0 NOT NULL,
    execution UUID,
    PRIMARY KEY (job, upstream)
);

CREATE INDEX ix_dependencies_upstream ON dependencies (upstream);

CREATE TABLE dependency_fires (
    at BIGINT NOT NULL,
    execution UUID NOT NULL,
    job UUID NOT NULL,
    disposition TEXT NOT NULL,
    cause TEXT NOT NULL,
    PRIMARY KEY (at, execution)
)
 WITHOUT ROWID;

CREATE INDEX dependency_fires_job ON dependency_fires (job, at, execution);

CREATE TABLE dependents (
    job UUID NOT NULL,
    PRIMARY KEY (job)
)
 WITHOUT ROWID;

CREATE TABLE duties (
    name TEXT NOT NULL,
    holder UUID,
    epoch INTEGER NOT NULL,
    until BIGINT NOT NULL,
    problem TEXT,
    since BIGINT,
    PRIMARY KEY (name)
)
 WITHOUT ROWID;

CREATE TABLE enrolments (
    hash BLOB NOT NULL,
    namespace INTEGER NOT NULL,
    role TEXT NOT NULL,
    permissions TEXT NOT NULL,
    queues TEXT NOT NULL,
    jobs TEXT NOT NULL,
    made_by TEXT,
    until BIGINT NOT NULL,
    PRIMARY KEY (hash)
);

CREATE TABLE event_fires (
    trigger_id UUID NOT NULL,
    event UUID NOT NULL,
    job UUID NOT NULL,
    at BIGINT NOT NULL,
    disposition TEXT NOT NULL,
    cause TEXT NOT NULL,
    execution UUID,
    PRIMARY KEY (trigger_id, event)
)
 WITHOUT ROWID;

CREATE INDEX event_fires_at ON event_fires (at, trigger_id);

CREATE INDEX event_fires_event ON event_fires (event);

CREATE TABLE events (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    within TEXT NOT NULL,
    "key" TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    source TEXT NOT NULL,
    payload TEXT NOT NULL,
    note TEXT,
    received_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX events_key ON events (namespace, within, "key");

CREATE INDEX events_name ON events (namespace, name, id);

CREATE INDEX events_namespace ON events (namespace, id);

CREATE INDEX events_received_at ON events (received_at);

CREATE TABLE fires (
    trigger_id UUID NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    disposition TEXT NOT NULL,
    cause TEXT NOT NULL,
    execution UUID,
    decided_at BIGINT NOT NULL,
    PRIMARY KEY (trigger_id, last)
)
 WITHOUT ROWID;

CREATE INDEX fires_last ON fires (last);

CREATE INDEX fires_late ON fires (decided_at) WHERE decided_at > last + 86400000000;

CREATE TABLE flow_news (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    step TEXT NOT NULL,
    event UUID NOT NULL,
    told BLOB NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item, step, event)
)
 WITHOUT ROWID;

CREATE TABLE flow_parcels (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    step TEXT NOT NULL,
    child UUID NOT NULL,
    count INTEGER NOT NULL,
    taken BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (parcel, item, step, child)
)
 WITHOUT ROWID;

CREATE INDEX flow_parcels_taken ON flow_parcels (child) WHERE taken;

CREATE TABLE flow_steps (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    step TEXT NOT NULL,
    job UUID,
    version INTEGER,
    phase TEXT NOT NULL,
    state TEXT NOT NULL,
    missing INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    execution UUID,
    iteration INTEGER NOT NULL,
    total INTEGER NOT NULL,
    ok INTEGER NOT NULL,
    bad INTEGER NOT NULL,
    taken INTEGER DEFAULT 0 NOT NULL,
    began_at BIGINT,
    ended_at BIGINT,
    ended_seq INTEGER,
    result BLOB,
    error TEXT,
    reason TEXT NOT NULL,
    wake_at BIGINT,
    PRIMARY KEY (parcel, item, step)
);

CREATE INDEX flow_steps_wake_at ON flow_steps (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE flow_waits (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    step TEXT NOT NULL,
    namespace INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    wait TEXT NOT NULL,
    remind_at BIGINT,
    at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item, step)
);

CREATE INDEX flow_waits_approval ON flow_waits (namespace, at) WHERE kind = 'approval';

CREATE INDEX flow_waits_event ON flow_waits (namespace, name) WHERE kind = 'event';

CREATE INDEX flow_waits_remind_at ON flow_waits (remind_at) WHERE remind_at IS NOT NULL;

CREATE TABLE flows (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    execution UUID NOT NULL,
    root UUID NOT NULL,
    parent UUID,
    namespace INTEGER NOT NULL,
    job UUID NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    params BLOB NOT NULL,
    extra BLOB NOT NULL,
    priority SMALLINT NOT NULL,
    deadline BIGINT,
    due_at BIGINT NOT NULL,
    queued_at BIGINT NOT NULL,
    began_at BIGINT NOT NULL,
    until BIGINT,
    pins TEXT NOT NULL,
    state TEXT NOT NULL,
    phase TEXT NOT NULL,
    verdict TEXT NOT NULL,
    remaining INTEGER NOT NULL,
    begun INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    stopped BOOLEAN NOT NULL,
    paused BOOLEAN NOT NULL,
    cause TEXT NOT NULL,
    reason TEXT NOT NULL,
    error TEXT,
    marks TEXT NOT NULL,
    stops TEXT NOT NULL,
    wake_at BIGINT,
    PRIMARY KEY (parcel, item)
);

CREATE UNIQUE INDEX flows_execution ON flows (execution);

CREATE INDEX flows_root ON flows (root);

CREATE INDEX flows_wake_at ON flows (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE history (
    parcel UUID NOT NULL,
    lo INTEGER NOT NULL,
    hi INTEGER NOT NULL,
    job UUID NOT NULL,
    queue INTEGER NOT NULL,
    namespace INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    worker TEXT NOT NULL,
    queued_at BIGINT,
    started_at BIGINT,
    completed_at BIGINT NOT NULL,
    exit_code INTEGER,
    ends BLOB,
    results BLOB,
    timings BLOB,
    error TEXT,
    flags SMALLINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (parcel, lo)
);

CREATE INDEX history_job ON history (job, parcel);

CREATE INDEX history_rare ON history (namespace, state, parcel, lo) WHERE state <> 'success';

CREATE INDEX history_rare_job ON history (job, state, parcel, lo) WHERE state <> 'success';

CREATE INDEX history_tenant ON history (namespace, parcel, lo) WHERE namespace <> 1;

CREATE TABLE holders (
    "key" TEXT NOT NULL,
    parcel UUID NOT NULL,
    lo INTEGER NOT NULL,
    PRIMARY KEY ("key", parcel, lo)
)
 WITHOUT ROWID;

CREATE TABLE holds (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    queue INTEGER,
    calendar TEXT,
    from_at BIGINT NOT NULL,
    until_at BIGINT,
    drain BOOLEAN NOT NULL,
    reason TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    ended_at BIGINT,
    ended_by TEXT,
    PRIMARY KEY (id)
)
 WITHOUT ROWID;

CREATE INDEX holds_open ON holds (namespace) WHERE ended_at IS NULL;

CREATE TABLE hooks (
    hash BLOB NOT NULL,
    namespace INTEGER NOT NULL,
    job UUID NOT NULL,
    "trigger" TEXT NOT NULL,
    secrets TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    until BIGINT,
    PRIMARY KEY (hash)
);

CREATE INDEX hooks_trigger ON hooks (job, "trigger");

CREATE INDEX hooks_until ON hooks (until) WHERE until IS NOT NULL;

CREATE TABLE idempotency (
    namespace INTEGER NOT NULL,
    route TEXT NOT NULL,
    "key" TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    status INTEGER,
    answer BLOB,
    until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, route, "key")
);

CREATE INDEX idempotency_until ON idempotency (until);

CREATE TABLE job_minutes (
    job UUID NOT NULL,
    minute BIGINT NOT NULL,
    server UUID NOT NULL,
    success INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    busy_micros BIGINT NOT NULL,
    PRIMARY KEY (job, minute, server)
)
 WITHOUT ROWID;

CREATE INDEX job_minutes_minute ON job_minutes (minute);

CREATE TABLE job_spans (
    job UUID NOT NULL,
    span INTEGER NOT NULL,
    at BIGINT NOT NULL,
    writer UUID NOT NULL,
    success INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    busy_micros BIGINT NOT NULL,
    durations BLOB,
    waits BLOB,
    PRIMARY KEY (job, span, at, writer)
)
 WITHOUT ROWID;

CREATE INDEX job_spans_at ON job_spans (span, at);

CREATE TABLE job_versions (
    job UUID NOT NULL,
    version INTEGER NOT NULL,
    spec TEXT NOT NULL,
    queue INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (job, version)
);

CREATE TABLE jobs (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    deleted_from TEXT,
    ending TEXT,
    owner UUID,
    base UUID,
    own TEXT,
    rollout INTEGER,
    words TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX jobs_base ON jobs (base) WHERE base IS NOT NULL;

CREATE INDEX jobs_deleted ON jobs (namespace, name, id) WHERE state = 'deleted';

CREATE INDEX jobs_ending ON jobs (id) WHERE ending IS NOT NULL;

CREATE UNIQUE INDEX jobs_name ON jobs (namespace, name) WHERE state <> 'deleted';

CREATE INDEX jobs_owner ON jobs (owner) WHERE owner IS NOT NULL;

CREATE INDEX jobs_paused ON jobs (namespace, name, id) WHERE state = 'paused';

CREATE TABLE join_parts (
    dependent UUID NOT NULL,
    step TEXT NOT NULL,
    interval_start BIGINT NOT NULL,
    upstream UUID NOT NULL,
    met BOOLEAN NOT NULL,
    state TEXT NOT NULL,
    execution UUID NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (dependent, step, interval_start, upstream)
)
 WITHOUT ROWID;

CREATE TABLE joins (
    dependent UUID NOT NULL,
    step TEXT NOT NULL,
    interval_start BIGINT NOT NULL,
    interval_end BIGINT,
    state TEXT NOT NULL,
    execution UUID,
    deadline BIGINT,
    wake_at BIGINT,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (dependent, step, interval_start)
)
 WITHOUT ROWID;

CREATE INDEX joins_made_at ON joins (made_at);

CREATE INDEX joins_open ON joins (dependent, interval_start, step) WHERE state = 'open';

CREATE INDEX joins_wake_at ON joins (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE keys (
    id TEXT NOT NULL,
    hash BLOB NOT NULL,
    name TEXT NOT NULL,
    namespace INTEGER NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT,
    permissions TEXT NOT NULL,
    queues TEXT NOT NULL,
    jobs TEXT NOT NULL,
    made_by TEXT,
    replaced_by TEXT,
    rate TEXT,
    PRIMARY KEY (id)
);

CREATE TABLE lanes (
    id INTEGER NOT NULL,
    namespace INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    needs TEXT NOT NULL,
    share TEXT DEFAULT '' NOT NULL,
    used_at BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX lanes_identity ON lanes (queue, needs, share);

CREATE TABLE limits (
    name TEXT NOT NULL,
    job UUID,
    queue INTEGER,
    namespace INTEGER,
    spec TEXT NOT NULL,
    ready BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (name)
)
 WITHOUT ROWID;

CREATE UNIQUE INDEX limits_job ON limits (job) WHERE job IS NOT NULL;

CREATE UNIQUE INDEX limits_namespace ON limits (namespace) WHERE namespace IS NOT NULL;

CREATE UNIQUE INDEX limits_queue ON limits (queue) WHERE queue IS NOT NULL;

CREATE TABLE litter (
    location TEXT NOT NULL,
    at BIGINT NOT NULL,
    archive INTEGER,
    PRIMARY KEY (location)
);

CREATE INDEX litter_archive ON litter (archive) WHERE archive IS NOT NULL;

CREATE INDEX litter_at ON litter (at);

CREATE TABLE logs (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    count INTEGER NOT NULL,
    base BIGINT NOT NULL,
    upto BIGINT NOT NULL,
    left_lines INTEGER,
    left_bytes BIGINT,
    lines BLOB NOT NULL,
    PRIMARY KEY (parcel, item, attempt, seq)
);

CREATE INDEX logs_cut ON logs (parcel, item) WHERE left_lines IS NOT NULL;

CREATE TABLE marks (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    kind TEXT NOT NULL,
    execution UUID,
    at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item)
)
 WITHOUT ROWID;

CREATE TABLE meetings (
    job UUID NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    execution UUID NOT NULL,
    opened_at BIGINT NOT NULL,
    until BIGINT,
    span BIGINT,
    count INTEGER NOT NULL,
    PRIMARY KEY (job, kind, "key")
)
 WITHOUT ROWID;

CREATE INDEX meetings_until ON meetings (until) WHERE until IS NOT NULL;

CREATE TABLE members (
    user_name TEXT NOT NULL,
    namespace INTEGER NOT NULL,
    role TEXT NOT NULL,
    permissions TEXT NOT NULL,
    PRIMARY KEY (user_name, namespace)
);

CREATE INDEX members_namespace ON members (namespace, user_name);

CREATE TABLE namespace_spans (
    namespace INTEGER NOT NULL,
    span INTEGER NOT NULL,
    at BIGINT NOT NULL,
    writer UUID NOT NULL,
    success INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    busy_micros BIGINT NOT NULL,
    lags BLOB,
    lag_max BIGINT,
    waits BLOB,
    queued INTEGER,
    PRIMARY KEY (namespace, span, at, writer)
)
 WITHOUT ROWID;

CREATE INDEX namespace_spans_at ON namespace_spans (span, at);

CREATE TABLE namespaces (
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    weight DOUBLE DEFAULT 1 NOT NULL,
    policy TEXT,
    spec TEXT DEFAULT '{}' NOT NULL,
    state TEXT DEFAULT 'active' NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX namespaces_name ON namespaces (name) WHERE state <> 'deleted';

CREATE TABLE oidc_flows (
    state BLOB NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (state)
);

CREATE TABLE parcels (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    job UUID NOT NULL,
    version INTEGER NOT NULL,
    queue INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    priority SMALLINT NOT NULL,
    deadline BIGINT,
    due_at BIGINT NOT NULL,
    keys TEXT,
    parent UUID,
    delivery SMALLINT NOT NULL,
    n INTEGER NOT NULL,
    ends BLOB NOT NULL,
    items BLOB NOT NULL,
    extras BLOB,
    submitted_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX parcels_deadline ON parcels (deadline, id) WHERE deadline IS NOT NULL;

CREATE INDEX parcels_parent ON parcels (parent, id) WHERE parent IS NOT NULL;

CREATE TABLE progress (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    percent DOUBLE,
    message TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item)
)
 WITHOUT ROWID;

CREATE TABLE queued (
    parcel UUID NOT NULL,
    lo INTEGER NOT NULL,
    hi INTEGER NOT NULL,
    job UUID NOT NULL,
    queue INTEGER NOT NULL,
    namespace INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    alone SMALLINT DEFAULT 0 NOT NULL,
    width INTEGER NOT NULL,
    flags SMALLINT DEFAULT 0 NOT NULL,
    lane INTEGER NOT NULL,
    rank BIGINT NOT NULL,
    queued_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (parcel, lo)
)
 WITHOUT ROWID;

CREATE INDEX queued_job ON queued (job);

CREATE INDEX queued_order ON queued (lane, rank, parcel, lo);

CREATE INDEX queued_preempting ON queued (lane, rank) WHERE (flags & 16) <> 0;

CREATE TABLE queues (
    id INTEGER NOT NULL,
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    policy TEXT DEFAULT '{"kind":"priority"}' NOT NULL,
    spec TEXT DEFAULT '{}' NOT NULL,
    state TEXT DEFAULT 'active' NOT NULL,
    is_default BOOLEAN DEFAULT false NOT NULL,
    revision INTEGER DEFAULT 1 NOT NULL,
    ranked INTEGER DEFAULT 1 NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX queues_name ON queues (namespace, name);

CREATE TABLE quotas (
    namespace INTEGER NOT NULL,
    spec TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (namespace)
)
 WITHOUT ROWID;

CREATE TABLE rates (
    name TEXT NOT NULL,
    pace BIGINT NOT NULL,
    PRIMARY KEY (name)
)
 WITHOUT ROWID;

CREATE TABLE replays (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    letters TEXT NOT NULL,
    rate TEXT,
    params TEXT,
    state TEXT NOT NULL,
    place_parcel UUID NOT NULL,
    place_item INTEGER NOT NULL,
    next_at BIGINT NOT NULL,
    total BIGINT,
    matched BIGINT NOT NULL,
    retried BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    note TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    completed_at BIGINT,
    PRIMARY KEY (id)
);

CREATE INDEX replays_completed ON replays (completed_at) WHERE completed_at IS NOT NULL;

CREATE INDEX replays_namespace ON replays (namespace, id);

CREATE INDEX replays_next ON replays (next_at) WHERE state = 'running';

CREATE TABLE requests (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL,
    session UUID NOT NULL,
    reason TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item, kind)
)
 WITHOUT ROWID;

CREATE INDEX requests_session ON requests (session);

CREATE TABLE reservations (
    lane INTEGER NOT NULL,
    session UUID NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT,
    PRIMARY KEY (lane)
)
 WITHOUT ROWID;

CREATE TABLE rollout_counts (
    job UUID NOT NULL,
    since BIGINT NOT NULL,
    version INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    server UUID NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (job, since, version, outcome, bucket, server)
)
 WITHOUT ROWID;

CREATE TABLE rollouts (
    job UUID NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    "plan" TEXT NOT NULL,
    since BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    cause TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (job)
)
 WITHOUT ROWID;

CREATE TABLE running (
    parcel UUID NOT NULL,
    lo INTEGER NOT NULL,
    hi INTEGER NOT NULL,
    job UUID NOT NULL,
    queue INTEGER NOT NULL,
    namespace INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    alone SMALLINT DEFAULT 0 NOT NULL,
    width INTEGER NOT NULL,
    flags SMALLINT DEFAULT 0 NOT NULL,
    session UUID NOT NULL,
    channel SMALLINT NOT NULL,
    n BIGINT NOT NULL,
    lane INTEGER NOT NULL,
    rank BIGINT NOT NULL,
    queued_at BIGINT NOT NULL,
    granted_at BIGINT NOT NULL,
    started_at BIGINT,
    PRIMARY KEY (parcel, lo)
)
 WITHOUT ROWID;

CREATE INDEX running_limited_job ON running (job) WHERE (flags & 2) <> 0;

CREATE INDEX running_limited_namespace ON running (namespace) WHERE (flags & 2) <> 0;

CREATE INDEX running_limited_queue ON running (queue) WHERE (flags & 2) <> 0;

CREATE INDEX running_preemptible ON running (namespace) WHERE (flags & 32) <> 0;

CREATE INDEX running_session ON running (session, parcel, lo);

CREATE TABLE secrets (
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE servers (
    id UUID NOT NULL,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    parts TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE sessions (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    worker TEXT NOT NULL,
    presence TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    queues TEXT NOT NULL,
    concurrency INTEGER NOT NULL,
    state TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seen BLOB NOT NULL,
    last_seen BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    api_key TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX sessions_key ON sessions (api_key, state);

CREATE INDEX sessions_state ON sessions (state, namespace, worker);

CREATE TABLE share_charges (
    queue INTEGER NOT NULL,
    share TEXT NOT NULL,
    server UUID NOT NULL,
    charged BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (queue, share, server)
)
 WITHOUT ROWID;

CREATE INDEX share_charges_at ON share_charges (at);

CREATE TABLE sign_in_codes (
    hash BLOB NOT NULL,
    namespace INTEGER NOT NULL,
    role TEXT NOT NULL,
    until BIGINT NOT NULL,
    permissions TEXT NOT NULL,
    queues TEXT NOT NULL,
    jobs TEXT NOT NULL,
    made_by TEXT,
    PRIMARY KEY (hash)
);

CREATE TABLE sign_ins (
    hash BLOB NOT NULL,
    user_name TEXT NOT NULL,
    csrf TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    members TEXT,
    network TEXT,
    PRIMARY KEY (hash)
);

CREATE INDEX sign_ins_user ON sign_ins (user_name);

CREATE TABLE signals (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    id UUID NOT NULL,
    name TEXT NOT NULL,
    payload BLOB NOT NULL,
    seq INTEGER NOT NULL,
    taken_by TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item, id)
);

CREATE TABLE steps (
    parcel UUID NOT NULL,
    item INTEGER NOT NULL,
    name TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    result BLOB NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (parcel, item, name)
);

CREATE TABLE store (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
)
 WITHOUT ROWID;

CREATE TABLE streaks (
    job UUID NOT NULL,
    since BIGINT NOT NULL,
    paused_at BIGINT,
    failures INTEGER,
    execution UUID,
    triggers TEXT,
    reason TEXT,
    PRIMARY KEY (job)
)
 WITHOUT ROWID;

CREATE TABLE template_jobs (
    job UUID NOT NULL,
    template UUID NOT NULL,
    PRIMARY KEY (job)
)
 WITHOUT ROWID;

CREATE INDEX template_jobs_template ON template_jobs (template);

CREATE TABLE template_versions (
    template UUID NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (template, version)
);

CREATE TABLE templates (
    id UUID NOT NULL,
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    PRIMARY KEY (id)
);

CREATE UNIQUE INDEX templates_name ON templates (namespace, name) WHERE deleted_at IS NULL;

CREATE TABLE tickets (
    "key" TEXT NOT NULL,
    parcel UUID NOT NULL,
    ticket BIGINT NOT NULL,
    PRIMARY KEY ("key", parcel)
)
 WITHOUT ROWID;

CREATE INDEX tickets_order ON tickets ("key", ticket);

CREATE TABLE timeouts (
    parcel UUID NOT NULL,
    at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    queue_for BIGINT,
    total_for BIGINT,
    PRIMARY KEY (parcel)
)
 WITHOUT ROWID;

CREATE INDEX timeouts_at ON timeouts (at, parcel);

CREATE TABLE timers (
    trigger_id UUID NOT NULL,
    job UUID NOT NULL,
    namespace INTEGER NOT NULL,
    next_fire_at BIGINT,
    decided_through BIGINT NOT NULL,
    last_execution UUID,
    fired INTEGER DEFAULT 0 NOT NULL,
    moved_to BIGINT,
    trouble TEXT,
    PRIMARY KEY (trigger_id)
)
 WITHOUT ROWID;

CREATE INDEX timers_next_fire_at ON timers (next_fire_at, trigger_id);

CREATE INDEX timers_trouble ON timers (trigger_id) WHERE trouble IS NOT NULL;

CREATE TABLE triggers (
    id UUID NOT NULL,
    job UUID NOT NULL,
    namespace INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    definition TEXT NOT NULL,
    rules TEXT NOT NULL,
    params TEXT,
    event TEXT,
    state TEXT NOT NULL,
    valid_from BIGINT NOT NULL,
    valid_to BIGINT,
    ended_from TEXT,
    fired INTEGER,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX triggers_ended ON triggers (valid_to) WHERE state = 'ended';

CREATE INDEX triggers_event ON triggers (namespace, event) WHERE event IS NOT NULL AND state <> 'ended';

CREATE INDEX triggers_job ON triggers (job, name);

CREATE TABLE unique_keys (
    namespace INTEGER NOT NULL,
    scope TEXT NOT NULL,
    "key" TEXT NOT NULL,
    execution UUID NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (namespace, scope, "key")
)
 WITHOUT ROWID;

CREATE INDEX unique_keys_until ON unique_keys (until);

CREATE TABLE usage_days (
    namespace INTEGER NOT NULL,
    day INTEGER NOT NULL,
    server UUID NOT NULL,
    executions BIGINT NOT NULL,
    busy_micros BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    PRIMARY KEY (namespace, day, server)
)
 WITHOUT ROWID;

CREATE INDEX usage_days_day ON usage_days (day);

CREATE TABLE users (
    name TEXT NOT NULL,
    password TEXT,
    active BOOLEAN DEFAULT true NOT NULL,
    created_at BIGINT NOT NULL,
    signed_in_at BIGINT,
    subject TEXT,
    PRIMARY KEY (name)
);

CREATE TABLE uses (
    job UUID NOT NULL,
    used UUID NOT NULL,
    PRIMARY KEY (job, used)
);

CREATE INDEX uses_used ON uses (used);

CREATE TABLE waiting (
    parcel UUID NOT NULL,
    lo INTEGER NOT NULL,
    hi INTEGER NOT NULL,
    job UUID NOT NULL,
    queue INTEGER NOT NULL,
    namespace INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    alone SMALLINT DEFAULT 0 NOT NULL,
    width INTEGER NOT NULL,
    flags SMALLINT DEFAULT 0 NOT NULL,
    wake_at BIGINT,
    reason TEXT NOT NULL,
    gate TEXT,
    rank BIGINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (parcel, lo)
)
 WITHOUT ROWID;

CREATE INDEX waiting_begun ON waiting (parcel, lo) WHERE reason IN ('children', 'signal', 'sleep');

CREATE INDEX waiting_circuit ON waiting (gate) WHERE reason = 'circuit';

CREATE INDEX waiting_gate ON waiting (gate, rank, parcel, lo) WHERE gate IS NOT NULL;

CREATE INDEX waiting_job ON waiting (job, reason);

CREATE INDEX waiting_limited ON waiting (queue) WHERE (flags & 2) <> 0;

CREATE INDEX waiting_queue ON waiting (queue);

CREATE INDEX waiting_turn ON waiting (gate) WHERE reason = 'overlap';

CREATE INDEX waiting_wake_at ON waiting (wake_at) WHERE wake_at IS NOT NULL;

CREATE INDEX waiting_woken ON waiting (gate) WHERE gate IS NOT NULL AND wake_at IS NOT NULL;

CREATE TABLE watched (
    watch UUID NOT NULL,
    object UUID NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (watch, object)
)
 WITHOUT ROWID;

CREATE INDEX watched_seen_at ON watched (watch, seen_at);

CREATE TABLE watches (
    id UUID NOT NULL,
    trigger_id UUID NOT NULL,
    job UUID NOT NULL,
    namespace INTEGER NOT NULL,
    began_at BIGINT NOT NULL,
    next_poll_at BIGINT NOT NULL,
    polled_at BIGINT DEFAULT 0 NOT NULL,
    ready BOOLEAN DEFAULT false NOT NULL,
    counted_at BIGINT DEFAULT 0 NOT NULL,
    objects INTEGER DEFAULT 0 NOT NULL,
    trouble TEXT,
    PRIMARY KEY (id)
);

CREATE INDEX watches_next_poll_at ON watches (next_poll_at);

CREATE INDEX watches_trigger ON watches (trigger_id);

CREATE VIEW executions AS
WITH RECURSIVE indexes(item) AS (SELECT 0 UNION ALL SELECT item + 1 FROM indexes WHERE item < 1023),
slices AS (
    SELECT parcel, lo, hi, namespace, queue, job, attempt, failures, losses,
           CASE WHEN reason IN ('children', 'sleep', 'signal') THEN 'running' ELSE 'waiting' END AS state,
           reason, wake_at, CAST(NULL AS BIGINT) AS queued_at,
           CAST(NULL AS BIGINT) AS started_at, CAST(NULL AS BIGINT) AS completed_at
    FROM waiting
    UNION ALL SELECT parcel, lo, hi, namespace, queue, job, attempt, failures, losses, 'queued', '', NULL, queued_at, NULL, NULL FROM queued
    UNION ALL SELECT parcel, lo, hi, namespace, queue, job, attempt, failures, losses, 'running', '', NULL, queued_at, started_at, NULL FROM running
    UNION ALL SELECT parcel, lo, hi, namespace, queue, job, attempt, failures, losses, state, reason, NULL, queued_at, started_at, completed_at FROM history)
SELECT lower(substr(hex(parcel), 1, 8) || '-' || substr(hex(parcel), 9, 4) || '-' || substr(hex(parcel), 13, 4) || '-'
       || substr(hex(parcel), 17, 4) || '-' || substr(hex(parcel), 21, 8)) || printf('%04x', item) AS id,
       parcel, item, namespace, queue, job, attempt, failures, losses, state, reason, wake_at, queued_at, started_at, completed_at
FROM slices JOIN indexes ON item >= lo AND item < hi;
