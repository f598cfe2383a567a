"""Sessions: each channel has its own number; a worker's capabilities decide which work it may take."""

from hypothesis import given
from hypothesis import strategies as st

from horae.model.fleet.protocol import CHANNELS, Function, Register
from horae.model.fleet.session import NOTHING_SEEN, capabilities_of, see, seen_on

channels = st.integers(0, CHANNELS - 1)
numbers = st.integers(0, 2**63 - 1)


@given(st.lists(st.tuples(channels, numbers), max_size=30))
def test_each_channel_remembers_its_last_number_and_no_others(steps):
    seen, expected = NOTHING_SEEN, [0] * CHANNELS
    for channel, n in steps:
        seen = see(seen, channel, n)
        expected[channel] = n

    assert [seen_on(seen, channel) for channel in range(CHANNELS)] == expected
    assert len(seen) == len(NOTHING_SEEN)


def test_a_new_session_has_seen_nothing():
    assert [seen_on(NOTHING_SEEN, channel) for channel in range(CHANNELS)] == [0] * CHANNELS


@given(st.dictionaries(st.text("abc=", min_size=1, max_size=3), st.text("xy", max_size=2), max_size=3))
def test_a_label_is_a_capability_with_and_without_its_value(labels):
    offered = capabilities_of(Register(protocol=1, worker="w", labels=labels, kinds=("http",)))

    assert offered >= {*labels, *(f"{name}={value}" for name, value in labels.items()), "kind:http"}
    assert {one for one in offered if ":" not in one and not one.startswith("worker")} == {
        *labels, *(f"{name}={value}" for name, value in labels.items())
    }  # fmt: skip


def test_functions_are_capabilities_by_name():
    offered = capabilities_of(Register(protocol=1, worker="w", functions=[Function(name="mail")], kinds=()))

    assert {one for one in offered if one.startswith(("function:", "kind:"))} == {"function:mail"}


def test_a_worker_always_has_its_name_and_host_as_labels():
    offered = capabilities_of(Register(protocol=2, worker="w1", host="db7", labels={"worker": "other"}, kinds=()))

    assert {"worker", "worker=w1", "host", "host=db7"} <= offered
    assert "worker=other" not in offered
