"""Object stores' notifications, as their manuals show them."""

import base64
import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.errors import BadInput
from horae.features.events.model.delivery import read_delivery
from horae.features.events.model.notifications import ObjectStoreNotice, read_notification
from horae.model.base.webhook_signature import SignedMessage

S3 = {
    "Records": [
        {
            "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "us-west-2",
            "eventTime": "1970-01-01T00:00:00.000Z", "eventName": "ObjectCreated:Put",
            "userIdentity": {"principalId": "AIDAJDPLRKLG7UEXAMPLE"},
            "requestParameters": {"sourceIPAddress": "127.0.0.1"},
            "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810"},
            "s3": {
                "s3SchemaVersion": "1.0", "configurationId": "testConfigRule",
                "bucket": {"name": "amzn-s3-demo-bucket", "ownerIdentity": {"principalId": "A3NL1KOZZKExample"}},
                "object": {
                    "key": "Happy+Face%2B.jpg", "size": 1024, "eTag": "d41d8cd98f00b204e9800998ecf8427e",
                    "versionId": "096fKKXTRTtl3on89fVO.nfljtsv6qko", "sequencer": "0055AED6DCD90281E5",
                },
            },
        },
    ]
}  # fmt: skip
TEST_EVENT = {
    "Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2014-10-13T15:57:02.089Z",
    "Bucket": "amzn-s3-demo-bucket", "RequestId": "5582815E1AEA5ADF", "HostId": "8cLeGAmw098X",
}  # fmt: skip
MINIO = {
    "EventName": "s3:ObjectCreated:Put",
    "Key": "images/my photo.jpg",
    "Records": [
        {
            "eventVersion": "2.0", "eventSource": "minio:s3", "awsRegion": "", "eventTime": "2017-07-07T18:46:37Z",
            "eventName": "s3:ObjectCreated:Put", "userIdentity": {"principalId": "minio"},
            "s3": {
                "s3SchemaVersion": "1.0", "configurationId": "Config",
                "bucket": {"name": "images", "ownerIdentity": {"principalId": "minio"}, "arn": "arn:aws:s3:::images"},
                "object": {
                    "key": "my%20photo.jpg", "size": 200436, "eTag": "1155d2e0f7e4d2c0", "contentType": "image/jpeg",
                    "sequencer": "14CF6ACA25E55A8D",
                },
            },
        },
    ],
}  # fmt: skip
OBJECT = {"kind": "storage#object", "name": "in/a.csv", "bucket": "drop", "generation": "1711111111", "size": "42",
          "metageneration": "1", "etag": "CKih16GjycICEAE="}  # fmt: skip
GCS = {
    "message": {
        "attributes": {
            "bucketId": "drop", "objectId": "in/a.csv", "eventType": "OBJECT_FINALIZE",
            "objectGeneration": "1711111111",
            "notificationConfig": "projects/_/buckets/drop/notificationConfigs/1", "payloadFormat": "JSON_API_V1",
            "eventTime": "2026-03-01T00:00:00Z",
        },
        "data": base64.b64encode(json.dumps(OBJECT).encode()).decode(),
        "messageId": "136969346945", "publishTime": "2026-03-01T00:00:00.1Z",
    },
    "subscription": "projects/p/subscriptions/s",
}  # fmt: skip
EVENT_BRIDGE = {
    "version": "0", "id": "17793124-05d4-b198-2fde-7ededc63b103", "detail-type": "Object Created", "source": "aws.s3",
    "time": "2021-11-12T00:00:00Z",
    "detail": {"bucket": {"name": "b1"}, "object": {"key": "a+b.csv", "size": 5, "etag": "b1946ac92492d234",
               "version-id": "IYV3p45BT0ac8hjHg1houSdS1a.Mro8e", "sequencer": "617f08299329d189"}},
}  # fmt: skip


def sns(message, kind="Notification"):
    return {"Type": kind, "MessageId": "22b80b92", "TopicArn": "arn:aws:sns:us-west-2:123456789012:MyTopic",
            "Message": json.dumps(message), "Timestamp": "2012-05-02T00:54:06.655Z", "SignatureVersion": "1",
            "Signature": "EXAMPLE",
            "SubscribeURL": "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription"}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (S3, ("s3", "created", "amzn-s3-demo-bucket", "Happy Face+.jpg", 1024, "096fKKXTRTtl3on89fVO.nfljtsv6qko")),
        (
            sns(S3),
            ("s3", "created", "amzn-s3-demo-bucket", "Happy Face+.jpg", 1024, "096fKKXTRTtl3on89fVO.nfljtsv6qko"),
        ),
        (MINIO, ("minio", "created", "images", "my photo.jpg", 200436, None)),
        (GCS, ("gcs", "created", "drop", "in/a.csv", 42, "1711111111")),
        (EVENT_BRIDGE, ("s3", "created", "b1", "a+b.csv", 5, "IYV3p45BT0ac8hjHg1houSdS1a.Mro8e")),
    ],
)
def test_notifications_of_every_store_have_one_form(body, expected):
    (found,) = read_notification(body)

    payload = found.payload
    assert tuple(payload[name] for name in ("source", "action", "bucket", "key", "size", "version")) == expected
    assert payload["etag"]
    assert payload["record"]


def test_equal_notifications_have_equal_ids_and_other_versions_differ():
    changed = json.loads(json.dumps(S3))
    changed["Records"][0]["s3"]["object"]["versionId"] = "another"
    ids = [read_notification(body)[0].id for body in (S3, json.loads(json.dumps(S3)), changed)]

    assert ids[0] == ids[1] != ids[2]
    assert read_notification(sns(S3))[0].id == ids[0]


def pushed(data: dict | None = OBJECT, message: str = "1", **attributes) -> dict:
    """Return a push message of Google, with or without the object's resource."""
    about = {**GCS["message"]["attributes"], "payloadFormat": "JSON_API_V1" if data else "NONE", **attributes}
    encoded = {"data": base64.b64encode(json.dumps(data).encode()).decode()} if data else {}
    return {"message": {"attributes": about, "messageId": message, **encoded}, "subscription": "projects/p/s"}


def test_a_google_notification_without_the_resource_is_parsed_from_its_attributes():
    (found,) = read_notification(pushed(None))

    assert (found.payload["key"], found.payload["version"], found.payload["action"]) == (
        "in/a.csv",
        "1711111111",
        "created",
    )
    assert (found.payload["size"], found.payload["etag"]) == (None, None)


@pytest.mark.parametrize("data", [OBJECT, None])
def test_repeated_google_messages_share_an_id_and_other_generations_differ(data):
    update = {"eventType": "OBJECT_METADATA_UPDATE"}
    again = data and {**data, "metageneration": "2"}
    bodies = [
        pushed(data), pushed(data, message="2"), pushed(data, objectGeneration="1711111112"),
        pushed(data, **update), pushed(again, **update, eventTime="2026-03-01T00:00:05Z"),
    ]  # fmt: skip

    ids = [read_notification(body)[0].id for body in bodies]

    assert ids[0] == ids[1]
    assert len(set(ids)) == 4


def test_an_overwritten_google_generation_is_part_of_the_payload():
    (found,) = read_notification(pushed(overwroteGeneration="1711111110"))

    assert found.payload["record"]["attributes"]["overwroteGeneration"] == "1711111110"


def test_one_body_may_report_several_objects():
    body = {"Records": S3["Records"] * 1 + MINIO["Records"]}

    assert [found.payload["key"] for found in read_notification(body)] == ["Happy Face+.jpg", "my photo.jpg"]


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("ObjectRemoved:Delete", "removed"), ("s3:ObjectRemoved:DeleteMarkerCreated", "removed"),
        ("OBJECT_DELETE", "removed"), ("OBJECT_ARCHIVE", "archived"), ("OBJECT_METADATA_UPDATE", "updated"),
        ("ObjectRestore:Completed", "restored"), ("LifecycleExpiration:Delete", "removed"),
        ("ReducedRedundancyLostObject", "other"), ("s3:ObjectCreated:CompleteMultipartUpload", "created"),
    ],
)  # fmt: skip
def test_actions_are_mapped_to_one_word(name, action):
    body = {"Records": [{**S3["Records"][0], "eventName": name}]}

    assert read_notification(body)[0].payload["action"] == action


def test_a_removal_has_no_size():
    record = json.loads(json.dumps(S3["Records"][0]))
    record["eventName"] = "ObjectRemoved:Delete"
    record["s3"]["object"] = {"key": "gone", "sequencer": "1"}

    (found,) = read_notification({"Records": [record]})

    assert (found.payload["size"], found.payload["etag"], found.payload["version"]) == (None, None, None)


@pytest.mark.parametrize(
    ("body", "note"),
    [
        (TEST_EVENT, "has arrived"),
        (sns(TEST_EVENT), "has arrived"),
        (sns("You have chosen to subscribe", "SubscriptionConfirmation"), "open https://sns.us-west-2.amazonaws.com"),
        (sns("", "UnsubscribeConfirmation"), "no longer subscribed"),
    ],
)
def test_messages_about_the_subscription_fire_nothing_and_give_a_remedy(body, note):
    found = read_notification(body)

    assert isinstance(found, ObjectStoreNotice)
    assert note in found.note


def test_oversized_or_odd_values_of_a_sender_can_be_stored():
    endless = {**sns("", "SubscriptionConfirmation"), "MessageId": "x" * 10_000, "TopicArn": "a\0" * 5000}
    found = read_notification(endless)
    assert "\0" not in found.note
    assert len(found.note) < 2500
    assert len(found.id) < 64
    (object,) = read_notification({"Records": [{**S3["Records"][0], "eventName": "ObjectCreated:\0" + "x" * 1000}]})
    assert len(object.type) <= 256
    assert "\0" not in object.type


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"message": "hi"}, {"Records": []}, {"Records": [{"kinesis": {}}]}, {"message": {"attributes": {}}}],
)
def test_any_other_body_is_not_a_notification(body):
    assert read_notification(body) is None


@pytest.mark.parametrize(
    "body",
    [
        {"Records": [{"s3": {}}]},
        {"Records": [{"eventName": "x", "s3": {"bucket": {"name": "b"}, "object": 7}}]},
        {"message": {"attributes": {"objectId": "a"}}},
        {"message": {**GCS["message"], "data": "%%%"}},
        {**sns(S3), "Message": "not json"},
        {**sns(S3), "Message": "[" * 5000},
        {**sns(S3), "Message": "[" * 5000 + "]" * 5000},
        {**sns(S3), "Message": '{"Event": "s3:TestEvent", "Bucket": ' + "[" * 100 + "]" * 100 + "}"},
        {"message": {**GCS["message"], "data": base64.b64encode(b"[" * 5000).decode()}},
        {"message": {**GCS["message"], "data": base64.b64encode(b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}").decode()}},
    ],
)
def test_a_broken_notification_is_refused(body):
    with pytest.raises(BadInput, match="cannot be read"):
        read_notification(body)


def test_any_json_is_an_event_with_the_id_of_its_signature():
    headers = {b"x-github-event": b"push", b"x-github-delivery": b"72d3162e"}

    (event,) = read_delivery(headers, b'{"ref": "main"}', SignedMessage("sha256:1"), name="push", scope="hook:1")

    assert (event.id, event.type, event.source, event.payload) == ("sha256:1", "push", "webhook", b'{"ref":"main"}')
    assert event.id_scope == "hook:1"


def test_without_a_signature_the_senders_own_id_is_used():
    (event,) = read_delivery({b"x-github-delivery": b"72d3162e"}, b"{}", None, name="push", scope="")
    assert event.id == "72d3162e"
    (event,) = read_delivery({}, b"", None, name="push", scope="")
    assert (event.id, event.payload) == (None, b"null")


def test_a_github_form_is_parsed():
    headers = {b"content-type": b"application/x-www-form-urlencoded"}

    (event,) = read_delivery(headers, b"payload=%7B%22a%22%3A1%7D", None, name="x", scope="")

    assert msgspec.json.decode(event.payload) == {"a": 1}
    (same,) = read_delivery(headers, b' {"a": 1}', None, name="x", scope="")
    assert same.payload == event.payload
    with pytest.raises(BadInput, match="no field `payload`"):
        read_delivery(headers, b"a=1", None, name="x", scope="")


@pytest.mark.parametrize("body", [b"hello", b"{", b'"\xff"', b"[" * 5000, b"[" * 100 + b"]" * 100])
def test_a_body_that_is_not_json_is_refused(body):
    with pytest.raises(BadInput):
        read_delivery({}, body, None, name="x", scope="")


WORDS = ("Records", "s3", "bucket", "object", "message", "attributes", "objectId", "Type", "TopicArn", "key")


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: st.dictionaries(st.sampled_from(WORDS), inner) | st.lists(inner, max_size=3),
        max_leaves=12,
    )
)
def test_any_json_is_parsed_or_refused(body):
    with suppress(BadInput):
        read_notification(body)
