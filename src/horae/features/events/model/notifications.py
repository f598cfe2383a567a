"""Notifications of object stores (S3, MinIO, Google Cloud Storage) about changed objects, read into a common form.

A body may be about several objects. Each becomes a payload with `bucket`, `key`, `action`, `size`, `etag`, `version` (a
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
from horae.model.executions.parcel import is_deep

_ACTIONS = (
    ("ObjectCreated", "created"), ("Object Created", "created"), ("OBJECT_FINALIZE", "created"),
    ("ObjectRemoved", "removed"), ("Object Deleted", "removed"), ("OBJECT_DELETE", "removed"),
    ("LifecycleExpiration", "removed"), ("OBJECT_ARCHIVE", "archived"), ("OBJECT_METADATA_UPDATE", "updated"),
    ("ObjectTagging", "updated"), ("ObjectAcl", "updated"), ("ObjectRestore", "restored"),
    ("Object Restore", "restored"), ("ObjectAccessed", "accessed"),
)  # fmt: skip


class ObjectChange(Struct, frozen=True):
    """One change of an object. Its id is the same if the notification is repeated; its type is named by the sender."""

    id: str
    type: str
    source: str
    payload: dict[str, Any]


class ObjectStoreNotice(Struct, frozen=True):
    """A message about the notifications themselves, such as a test. It fires nothing; `note` explains it to users."""

    source: str
    type: str
    note: str
    id: str


def read_notification(body: Any) -> list[ObjectChange] | ObjectStoreNotice | None:
    """Read a decoded body; return None if it is not from an object store. Raises BadInput for a broken notification."""
    if not isinstance(body, dict):
        return None
    try:
        return _read(body)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise BadInput(
            f"This looks like an object store's notification, but cannot be read: {reason[:200]}.",
            "Send it in the format of S3, MinIO or Google Cloud Storage.",
        ) from None


def _read(body: dict[str, Any]) -> list[ObjectChange] | ObjectStoreNotice | None:
    if (
        body.get("Type") in ("SubscriptionConfirmation", "UnsubscribeConfirmation", "Notification")
        and "TopicArn" in body
    ):
        return _sns(body)
    if body.get("Event") == "s3:TestEvent":
        note = f"A test notification of Amazon S3 for the bucket {_short(body.get('Bucket'))} has arrived."
        return ObjectStoreNotice("s3", "s3:TestEvent", note, f"s3:{_digest(['test', body.get('RequestId')])}")
    records = body.get("Records")
    if isinstance(records, list) and records and all(isinstance(r, dict) and "s3" in r for r in records):
        return [_s3(record) for record in records]
    if body.get("source") == "aws.s3" and "detail-type" in body:
        return [_event_bridge(body)]
    message = body.get("message")
    if isinstance(message, dict) and isinstance(message.get("attributes"), dict):
        return [_gcs(message)] if "objectId" in message["attributes"] else None
    return None


def _sns(body: dict[str, Any]) -> list[ObjectChange] | ObjectStoreNotice | None:
    """Read a message of Amazon SNS, which contains the notification as text, or a request to confirm a subscription."""
    kind, topic = str(body["Type"]), _short(body["TopicArn"])
    if kind == "Notification":
        return read_notification(_inner(body["Message"]))
    note = f"The topic {topic} is no longer subscribed."
    if kind == "SubscriptionConfirmation":
        note = f"Confirm the subscription to {topic}: open {_short(body['SubscribeURL'], 2000)} once."
    return ObjectStoreNotice("sns", kind, note, f"sns:{_digest(body['MessageId'])}")


def _inner(text: str | bytes) -> Any:
    """Decode a document inside a notification; it may be as deep as a body. Raises ValueError and RecursionError."""
    found = msgspec.json.decode(text)
    if is_deep(found):
        raise ValueError("a document in it is nested too deep")
    return found


def _s3(record: dict[str, Any]) -> ObjectChange:
    """Read a record of Amazon S3 or MinIO, with the key encoded as in a form."""
    source = "minio" if str(record.get("eventSource", "")).startswith("minio") else "s3"
    name, where, what = str(record["eventName"]), record["s3"]["bucket"], record["s3"]["object"]
    payload = _payload(
        source, name, str(where["name"]), unquote_plus(str(what["key"])), size=what.get("size"), etag=what.get("eTag"),
        version=what.get("versionId"), time=record.get("eventTime"), record=record,
    )  # fmt: skip
    return _change_of(payload, what.get("sequencer"), record.get("eventTime"))


def _event_bridge(body: dict[str, Any]) -> ObjectChange:
    """Read an event of Amazon S3 from EventBridge, with the key not encoded."""
    detail = body["detail"]
    what = detail["object"]
    payload = _payload(
        "s3", str(body["detail-type"]), str(detail["bucket"]["name"]), str(what["key"]), size=what.get("size"),
        etag=what.get("etag"), version=what.get("version-id"), time=body.get("time"), record=body,
    )  # fmt: skip
    return _change_of(payload, what.get("sequencer"), body.get("id"))


def _gcs(message: dict[str, Any]) -> ObjectChange:
    """Read a Pub/Sub push of Google Cloud Storage: attributes name the object, the data may describe it in full."""
    about = message["attributes"]
    data = message.get("data")
    resource = _inner(base64.b64decode(data)) if data and about.get("payloadFormat") != "NONE" else {}
    size = resource.get("size")
    payload = _payload(
        "gcs", str(about["eventType"]), str(about["bucketId"]), str(about["objectId"]),
        size=None if size is None else int(size), etag=resource.get("etag"), version=about.get("objectGeneration"),
        time=about.get("eventTime"), record={"attributes": about, "object": resource},
    )  # fmt: skip
    # Metadata may change without a new generation. The metageneration, or else the time, tells such changes apart.
    return _change_of(payload, about.get("objectGeneration"), resource.get("metageneration") or about.get("eventTime"))


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
    """Return the change of an object in one word, the same for all stores; "other" if the event is unknown."""
    return next((action for word, action in _ACTIONS if word in event_name), "other")


def _change_of(payload: dict[str, Any], *distinctions: Any) -> ObjectChange:
    """Return the change with its id; two changes of the same object version differ in `distinctions`."""
    identity: Iterable[Any] = (
        *(payload[name] for name in ("source", "bucket", "key", "version", "etag", "eventName")),
        *distinctions,
    )
    change_id = f"{payload['source']}:{_digest(list(identity))}"
    return ObjectChange(change_id, _short(payload["eventName"]), payload["source"], payload)


def _digest(identity: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:40]


def _short(value: Any, most: int = 256) -> str:
    """Return a sender's text in a form that can be stored and shown: shortened, without null characters."""
    return str(value).replace("\0", "")[:most]
