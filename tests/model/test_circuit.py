"""The changes of a circuit: by the share of failures in a window, and by its probes."""

import pytest

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.admission.circuit import CIRCUIT as KIND
from horae.model.admission.circuit import (
    AttemptCounts,
    Circuit,
    CircuitStatus,
    bucket_of,
    decide_change,
    gate_of,
    is_due,
    read_gate,
    why_blocked,
)
from tests.model.making import JOBS

JOB = JOBS[0]
NOW = 1_000 * SECOND
CIRCUIT = Circuit(failures=50, window=60 * SECOND, minimum=10, open_for=30 * SECOND, probes=2)
CLOSED = CircuitStatus(job=JOB)
HALF = CircuitStatus(job=JOB, state="half-open", era=2)


@pytest.mark.parametrize(("ok", "failed"), [(0, 0), (0, 9), (6, 5), (100, 99)])
def test_a_circuit_stays_closed_below_the_share_or_the_minimum(ok, failed):
    assert decide_change(CIRCUIT, CLOSED, AttemptCounts(ok, failed), NOW) is None


@pytest.mark.parametrize(("ok", "failed"), [(0, 10), (5, 5), (99, 100)])
def test_a_circuit_opens_at_the_share(ok, failed):
    change = decide_change(CIRCUIT, CLOSED, AttemptCounts(ok, failed), NOW)
    assert (change.state, change.until) == ("open", NOW + 30 * SECOND)
    assert change.cause == f"{failed} of {ok + failed} attempts failed within 1m."


def test_probes_decide_a_half_open_circuit():
    assert decide_change(CIRCUIT, HALF, AttemptCounts(1, 0), NOW) is None
    assert decide_change(CIRCUIT, HALF, AttemptCounts(2, 0), NOW).state == "closed"
    again = decide_change(CIRCUIT, HALF, AttemptCounts(1, 1), NOW)
    assert (again.state, again.until, again.cause) == ("open", NOW + 30 * SECOND, "A probe failed.")


@pytest.mark.parametrize("state", ["closed", "open", "half-open"])
def test_a_circuit_set_by_hand_does_not_change(state):
    assert decide_change(CIRCUIT, CircuitStatus(job=JOB, state=state, forced=True), AttemptCounts(0, 100), NOW) is None


def test_an_open_circuit_is_probed_after_its_time():
    standing = CircuitStatus(job=JOB, state="open", until=NOW)
    assert decide_change(CIRCUIT, standing, AttemptCounts(0, 100), NOW) is None
    assert (is_due(standing, NOW - 1), is_due(standing, NOW)) == (False, True)
    assert not is_due(CircuitStatus(job=JOB, state="open", until=None), NOW)


def test_a_window_has_several_buckets():
    assert bucket_of(CIRCUIT, NOW + 3 * SECOND) == NOW + 2 * SECOND
    assert bucket_of(Circuit(window=SECOND), NOW + 999_999) == NOW


def test_a_gate_names_the_job_and_the_key():
    assert read_gate(gate_of(JOB, "a:b")) == (JOB, "a:b")
    assert read_gate(gate_of(JOB, "")) == (JOB, "")


def test_the_reason_is_explained_to_users():
    standing = CircuitStatus(job=JOB, key="acme", state="open", until=NOW, cause="5 of 5 attempts failed within 1m.")
    assert why_blocked(standing, "pay") == (
        'The circuit of "pay" for "acme" is open until 1970-01-01T00:16:40Z: 5 of 5 attempts failed within 1m.'
    )


def test_a_definition_is_read_and_written():
    given = {"failures": "20%", "window": "2m", "minimum": 5, "openFor": "1m", "probes": 3, "key": "${params.host}"}
    circuit = KIND.read(given, "circuit")
    assert circuit == Circuit(
        failures=20, window=120 * SECOND, minimum=5, open_for=60 * SECOND, probes=3, key="${params.host}"
    )
    assert KIND.write(circuit) == given
    assert KIND.read("20%", "circuit") == Circuit(failures=20)
    assert KIND.read(True, "circuit") == Circuit()


@pytest.mark.parametrize(
    ("circuit", "field"),
    [
        ({"failures": 0.5}, "circuit.failures"),
        ({"failures": "0%"}, "circuit.failures"),
        ({"failures": "101%"}, "circuit.failures"),
        ({"window": "0s"}, "circuit.window"),
        ({"window": "2h"}, "circuit.window"),
        ({"minimum": 0}, "circuit.minimum"),
        ({"probes": 0}, "circuit.probes"),
        ({"openFor": "2d"}, "circuit.openFor"),
        ({"key": "${nothing}"}, "circuit.key"),
        ({"failure": "50%"}, "circuit.failure"),
        ("often", "circuit.failures"),
        ([], "circuit"),
    ],
)
def test_an_invalid_circuit_is_refused_with_its_field(circuit, field):
    with pytest.raises(BadInput) as refused:
        KIND.read(circuit, "circuit")
    assert refused.value.fields["field"] == field
