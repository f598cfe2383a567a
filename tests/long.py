"""What `make test` leaves to `make prove`: the second of two stores, or the same again with another worker.

Each line takes seconds of real processes for what is also shown in another way: the contract tests run every move on
every store, and of each of these tests one kind stays.
"""

import re

_LONG = (
    r"acceptance/test_fleet.py::(?!test_work_goes_on|test_no_child).*\[sqlite",
    r"acceptance/test_giving_way.py::.*\[postgres",
    r"acceptance/test_requests.py::.*\[postgres",
    r"acceptance/test_queues.py::.*\[postgres",
    r"acceptance/test_versions.py::.*\[sqlite",
    r"acceptance/test_explain.py::.*\[sqlite",
    r"acceptance/test_(failures|limits|workflows).py::.*\[up",
    r"acceptance/test_(placement|sharing).py::.*\[two servers",
    r"bench/test_benches.py::test_(a_change_is_seen|commands_are_held)",
    r"examples/test_worker_js.py::test_(a_drained|a_worker_hears|an_at_most_once|two_servers)",
    r"examples/test_workers.py::.*(test_a_running|test_full_slots|test_it_leaves|test_sigterm).*\[python",
)
_PATTERN = re.compile("|".join(f"(?:{one})" for one in _LONG))


def is_long(nodeid: str) -> bool:
    return _PATTERN.search(nodeid) is not None
