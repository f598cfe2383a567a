"""What object stores say when an object changes: S3, MinIO and Google Cloud Storage, read into one form.

A body may tell of several objects. Each becomes a payload with `bucket`, `key`, `action`, `size`, `etag`, `version` (a
version id or a generation), `eventName`, `time`, `source`, and the sender's own `record`.
"""

import base64
import hashlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_plus

import msgspec
from msgspec import Struct

from horae.errors import BadInput

_ACTIONS = (
    ("ObjectCreated", "created"), ("Object Created", "created"), ("OBJECT_FINALIZE", "created"),
    ("ObjectRemoved", "removed"), ("Object Deleted", "removed"), ("OBJECT_DELETE", "removed"),
    ("LifecycleExpiration", "removed"), ("OBJECT_ARCHIVE", "archived"), ("OBJECT_METADATA_UPDATE", "updated"),
    ("ObjectTagging", "updated"), ("ObjectAcl", "updated"), ("ObjectRestore", "restored"),
    ("Object Restore", "restored"), ("ObjectAccessed", "accessed"),
)  # fmt: skip


class Told(Struct, frozen=True):
    """One thing that a body tells. Its id is the same when it is told again, its type the sender's word for it."""

    id: str
    type: str
    source: str
    payload: dict[str, Any]


class Notice(Struct, frozen=True):
    """A body that is about the notifications themselves: nothing fires, and `note` says what is to be done."""

    source: str
    type: str
    note: str
    id: str


def read_notification(body: Any) -> list[Told] | Notice | None:
    """What a decoded body tells of objects; None when it is no object store's. Raises BadInput for a broken one."""
    if not isinstance(body, dict):
        return None
    try:
        return _read(body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise BadInput(
            f"This looks like an object store's notification, but cannot be read: {reason[:200]}.",
            "Send it as S3, MinIO or Google Cloud Storage spell it.",
        ) from None


def _read(body: dict[str, Any]) -> list[Told] | Notice | None:
    if (
        body.get("Type") in ("SubscriptionConfirmation", "UnsubscribeConfirmation", "Notification")
        and "TopicArn" in body
    ):
        return _sns(body)
    if body.get("Event") == "s3:TestEvent":
        note = f"Amazon S3 tests its notifications of the bucket {_short(body.get('Bucket'))}: they arrive."
        return Notice("s3", "s3:TestEvent", note, f"s3:{_digest(['test', body.get('RequestId')])}")
    records = body.get("Records")
    if isinstance(records, list) and records and all(isinstance(r, dict) and "s3" in r for r in records):
        return [_s3(record) for record in records]
    if body.get("source") == "aws.s3" and "detail-type" in body:
        return [_event_bridge(body)]
    message = body.get("message")
    if isinstance(message, dict) and isinstance(message.get("attributes"), dict):
        return [_gcs(message)] if "objectId" in message["attributes"] else None
    return None


def _sns(body: dict[str, Any]) -> list[Told] | Notice | None:
    """Amazon SNS puts the message into a text; before the first it asks whether it is welcome."""
    kind, topic = str(body["Type"]), _short(body["TopicArn"])
    if kind == "Notification":
        inner = msgspec.json.decode(body["Message"])
        return read_notification(inner)
    note = f"The topic {topic} is no longer subscribed."
    if kind == "SubscriptionConfirmation":
        note = f"Confirm the subscription to {topic}: open {_short(body['SubscribeURL'], 2000)} once."
    return Notice("sns", kind, note, f"sns:{_digest(body['MessageId'])}")


def _s3(record: dict[str, Any]) -> Told:
    """A record as Amazon S3 and MinIO write it; keys are encoded as in a form."""
    source = "minio" if str(record.get("eventSource", "")).startswith("minio") else "s3"
    name, where, what = str(record["eventName"]), record["s3"]["bucket"], record["s3"]["object"]
    payload = _payload(
        source, name, str(where["name"]), unquote_plus(str(what["key"])), size=what.get("size"), etag=what.get("eTag"),
        version=what.get("versionId"), time=record.get("eventTime"), record=record,
    )  # fmt: skip
    return _told(payload, what.get("sequencer"), record.get("eventTime"))


def _event_bridge(body: dict[str, Any]) -> Told:
    """What Amazon S3 tells EventBridge; keys are as they are."""
    detail = body["detail"]
    what = detail["object"]
    payload = _payload(
        "s3", str(body["detail-type"]), str(detail["bucket"]["name"]), str(what["key"]), size=what.get("size"),
        etag=what.get("etag"), version=what.get("version-id"), time=body.get("time"), record=body,
    )  # fmt: skip
    return _told(payload, what.get("sequencer"), body.get("id"))


def _gcs(message: dict[str, Any]) -> Told:
    """A Pub/Sub push of Google Cloud Storage: attributes name the object, the data may be its whole resource."""
    about = message["attributes"]
    data = message.get("data")
    resource = msgspec.json.decode(base64.b64decode(data)) if data and about.get("payloadFormat") != "NONE" else {}
    size = resource.get("size")
    payload = _payload(
        "gcs", str(about["eventType"]), str(about["bucketId"]), str(about["objectId"]),
        size=None if size is None else int(size), etag=resource.get("etag"), version=about.get("objectGeneration"),
        time=about.get("eventTime"), record={"attributes": about, "object": resource},
    )  # fmt: skip
    # Metadata may change again and again without another generation: then, unless the resource tells, the time does.
    return _told(payload, about.get("objectGeneration"), resource.get("metageneration") or about.get("eventTime"))


def _payload(
    source: str,
    event_name: str,
    bucket: str,
    key: str,
    *,
    size: Any,
    etag: Any,
    version: Any,
    time: Any,
    record: dict[str, Any],
) -> dict[str, Any]:
    return {
        "source": source,
        "eventName": event_name,
        "action": action_of(event_name),
        "bucket": bucket,
        "key": key,
        "size": size,
        "etag": None if etag is None else str(etag).strip('"'),
        "version": None if version is None else str(version),
        "time": time,
        "record": record,
    }


def action_of(event_name: str) -> str:
    """What happened to an object, in one word for all stores; what none of them says is "other"."""
    return next((action for word, action in _ACTIONS if word in event_name), "other")


def _told(payload: dict[str, Any], *apart: Any) -> Told:
    """`apart` tells two events of one object version apart that happened one after the other."""
    identity: Iterable[Any] = (
        *(payload[name] for name in ("source", "bucket", "key", "version", "etag", "eventName")),
        *apart,
    )
    id = f"{payload['source']}:{_digest(list(identity))}"
    return Told(id, _short(payload["eventName"]), payload["source"], payload)


def _digest(identity: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:40]


def _short(value: Any, most: int = 256) -> str:
    """What a sender says, as far as it can be kept and shown."""
    return str(value).replace("\0", "")[:most]
