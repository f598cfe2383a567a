"""Erasure of the params, results, logs and files of one execution; its record stays, with times and final state.

Only ended executions are erased. The parcel is written again without the item's params, tags and key. All items keep
their indexes.
"""

from uuid import UUID

import msgspec
from msgspec import structs

from horae.model.base.ids import execution_id
from horae.model.base.packing import Packed, pack
from horae.model.executions.parcel import encode_extras, extras_of
from horae.model.fleet.protocol import Failure
from horae.store.script import ColumnType, Fetch, Insert, Row, Script, Statement
from horae.store.tables import LIVE_SHELVES

ERASED = b'{"$erased":true}'
MESSAGE = "(erased)"

PARCEL = Statement("parcel_to_erase", "SELECT n, ends, items, extras, job FROM parcels WHERE id = $1 FOR UPDATE")
ENDED = Statement(
    "ended_to_erase",
    "SELECT lo, hi, ends, results, error FROM history WHERE parcel = $1 AND lo <= $2 AND hi > $2 FOR UPDATE",
)
KEEP_PARCEL = Statement("erase_params", "UPDATE parcels SET ends = $2, items = $3, extras = $4 WHERE id = $1")
# The keys of a parcel apply to all its items, so they are needed until the last one has ended.
NO_KEYS = Statement(
    "erase_keys",
    "UPDATE parcels SET keys = NULL WHERE id = $1 AND NOT EXISTS ("
    + " UNION ALL ".join(f"SELECT 1 FROM {shelf} WHERE parcel = $1" for shelf in LIVE_SHELVES)
    + ")",
)
KEEP_RESULTS = Statement(
    "erase_results", "UPDATE history SET ends = $3, results = $4, error = $5 WHERE parcel = $1 AND lo = $2"
)
TRIES = Statement(
    "tries_to_erase",
    "SELECT attempt, lo, error FROM attempts WHERE parcel = $1 AND lo <= $2 AND hi > $2 AND error IS NOT NULL",
)
KEEP_TRY = Statement("erase_try", "UPDATE attempts SET error = $4 WHERE parcel = $1 AND attempt = $2 AND lo = $3")
NO_LOGS = Statement("erase_logs", "DELETE FROM logs WHERE parcel = $1 AND item = $2")
NO_PROGRESS = Statement("erase_progress", "DELETE FROM progress WHERE parcel = $1 AND item = $2")
NO_STEPS = Statement("erase_steps", "DELETE FROM steps WHERE parcel = $1 AND item = $2")
NO_SIGNALS = Statement("erase_signals", "DELETE FROM signals WHERE parcel = $1 AND item = $2")
NO_BLOBS = Statement("erase_blobs", "DELETE FROM blobs WHERE parcel = $1 AND item = $2")
BESIDE = (NO_LOGS, NO_PROGRESS, NO_STEPS, NO_SIGNALS, NO_BLOBS)
WORKFLOW = Statement(
    "erase_workflow", "UPDATE flows SET params = $3, extra = $4, error = NULL WHERE parcel = $1 AND item = $2"
)
WORKFLOW_STEPS = Statement(
    "erase_workflow_steps", "UPDATE flow_steps SET result = NULL, error = NULL WHERE parcel = $1 AND item = $2"
)
FILES = Statement("files_to_erase", "SELECT location FROM artifacts WHERE parcel = $1 AND item = $2")
NO_FILES = Statement("erase_files", "DELETE FROM artifacts WHERE parcel = $1 AND item = $2")
NO_UNIQUE = Statement("erase_unique_key", "DELETE FROM unique_keys WHERE execution = $1")
NO_DEDUPLICATION = Statement("erase_deduplication_keys", "DELETE FROM meetings WHERE job = $1 AND execution = $2")
_LITTER: tuple[tuple[str, ColumnType], ...] = (("location", "text"), ("at", "bigint"))


def erase(parcel: UUID, item: int) -> Script[bool]:
    """Erase the data of one execution; return False if it has not ended or no longer exists."""
    parcels = yield Fetch(PARCEL, (parcel,))
    ended = yield Fetch(ENDED, (parcel, item))
    if not parcels or not ended:
        return False
    yield from _params(parcel, item, parcels[0])
    yield from _results(parcel, item, ended[0])
    for attempt, lo, error in (yield Fetch(TRIES, (parcel, item))):
        yield Fetch(KEEP_TRY, (parcel, attempt, lo, _without(error)))
    for statement in BESIDE:
        yield Fetch(statement, (parcel, item))
    yield Fetch(WORKFLOW, (parcel, item, ERASED, b"{}"))
    yield Fetch(WORKFLOW_STEPS, (parcel, item))
    files = [(row[0], 0) for row in (yield Fetch(FILES, (parcel, item)))]
    if files:
        # The instant 0 makes this the oldest litter, so that the next sweep deletes the files.
        yield Insert("litter", _LITTER, files, conflict="ON CONFLICT DO NOTHING")
        yield Fetch(NO_FILES, (parcel, item))
    execution = execution_id(parcel, item)
    yield Fetch(NO_UNIQUE, (execution,))
    yield Fetch(NO_DEDUPLICATION, (parcels[0][-1], execution))
    return True


def _params(parcel: UUID, item: int, row: Row) -> Script[None]:
    count, ends, items, encoded, _ = row
    parts = Packed(bytes(ends), bytes(items)).part(0, count)
    parts[item] = ERASED
    extras = list(extras_of(None if encoded is None else bytes(encoded), 0, count))
    extras[item] = structs.replace(extras[item], tags={}, key=None)
    packed = pack(parts)
    yield Fetch(KEEP_PARCEL, (parcel, packed.ends, packed.blob, encode_extras(extras)))
    yield Fetch(NO_KEYS, (parcel,))


def _results(parcel: UUID, item: int, row: Row) -> Script[None]:
    lo, hi, ends, results, error = row
    if results is not None:
        parts = Packed(bytes(ends or b""), bytes(results)).part(0, hi - lo)
        if parts[item - lo] != b"null":
            parts[item - lo] = ERASED
        packed = pack(parts)
        ends, results = packed.ends, packed.blob
    if error is not None or results is not None:
        yield Fetch(KEEP_RESULTS, (parcel, lo, ends, results, None if error is None else _without(error)))


def _without(error: str) -> str:
    """Return an error (as JSON) without its message and traceback."""
    known = msgspec.json.decode(error, type=Failure)
    return msgspec.json.encode(structs.replace(known, message=MESSAGE, traceback="")).decode()
