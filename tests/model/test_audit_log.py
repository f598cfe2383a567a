"""The chain of the audit log: edits, removals, swaps and truncation are found, and the first broken row is named."""

import pytest
from msgspec.structs import replace

from horae.features.audit_log.model import ChainChecker, ChainHead, Link, link
from horae.model.tenancy.audit import AuditEntry


def entry(n: int) -> AuditEntry:
    return AuditEntry(
        at=n, namespace=1, actor="key:ab", actor_name="ada", address="10.0.0.1", action="jobs.edit", target=f"jobs/{n}",
        outcome="done", detail="{}",
    )  # fmt: skip


def chain(length: int) -> tuple[list[Link], ChainHead]:
    head, links = ChainHead(), list[Link]()
    for n in range(length):
        links.append(link(entry(n), head))
        head = ChainHead(links[-1].seq, links[-1].hash)
    return links, replace(head, signature=signature(head.signed_bytes))


def signature(said: bytes) -> bytes:
    return b"by us: " + said


def check(links: list[Link], head: ChainHead) -> ChainChecker:
    checker = ChainChecker()
    checker.follow(links)
    checker.end(head, head, lambda said, shown: shown == signature(said))
    return checker


def test_an_unchanged_log_is_valid():
    checker = check(*chain(5))
    assert checker.broken is None
    assert checker.seq == 5


def test_an_empty_log_is_valid():
    assert check([], ChainHead()).broken is None


@pytest.mark.parametrize(
    "change",
    [
        {"at": 99}, {"namespace": 2}, {"actor": "key:cd"}, {"actor_name": "eve"}, {"address": ""}, {"action": "x"},
        {"target": "jobs/9"}, {"outcome": "refused"}, {"detail": "[]"}, {"begun": 1},
    ],
)  # fmt: skip
def test_an_edited_row_is_named(change: dict[str, object]):
    links, head = chain(5)
    links[2] = Link(3, replace(links[2].entry, **change), links[2].hash)
    broken = check(links, head).broken
    assert broken is not None
    assert broken.seq == 3


def test_a_row_edited_with_its_hash_breaks_the_next():
    links, head = chain(5)
    edited = replace(links[2].entry, target="jobs/other")
    links[2] = link(edited, ChainHead(2, links[1].hash))
    broken = check(links, head).broken
    assert broken is not None
    assert broken.seq == 4


def test_a_removed_row_is_named():
    links, head = chain(5)
    del links[2]
    broken = check(links, head).broken
    assert broken is not None
    assert broken.seq == 3
    assert "missing" in broken.reason


def test_swapped_rows_are_named():
    links, head = chain(5)
    links[1], links[2] = Link(2, links[2].entry, links[2].hash), Link(3, links[1].entry, links[1].hash)
    broken = check(links, head).broken
    assert broken is not None
    assert broken.seq == 2


def test_a_truncated_log_is_reported():
    links, head = chain(5)
    broken = check(links[:3], head).broken
    assert broken is not None
    assert broken.seq == 4


def test_a_forged_head_of_a_truncated_log_has_no_signature():
    links, head = chain(5)
    forged = ChainHead(3, links[2].hash, head.signature)
    broken = check(links[:3], forged).broken
    assert broken is not None
    assert "signed" in broken.reason


def test_a_row_after_the_head_is_reported():
    links, head = chain(5)
    more = [*links, link(entry(9), head)]
    assert check(more, head).broken is not None
