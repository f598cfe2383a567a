"""Every lock and guard of the moves, removed one at a time: something must notice.

`by` names the expected detector: a scene, a crossing, or a contract test (`test_module.test_name`, run on SQLite in
memory). Guards whose removal cannot be noticed have a reason to be kept. An edit names a guard by its mark in the
source, or an SQL statement by its name: neither depends on the place or the formatting of the code.
"""

from tests.races.mutating.mutation import Mutation
from tests.races.mutations.archive import ARCHIVES
from tests.races.mutations.claims import CLAIMS, PREEMPTS
from tests.races.mutations.events import EVENTS
from tests.races.mutations.gates import CIRCUITS, HOLDS, LIMITS
from tests.races.mutations.jobs import MEETINGS, NAMESPACES, OTHERS, ROLLOUTS, SUBMITS, TEMPLATES, USERS
from tests.races.mutations.reports import CANCELS, REPORTS
from tests.races.mutations.sessions import SESSIONS
from tests.races.mutations.triggers import BACKFILLS, CALENDARS, DEPENDENCIES, FIRES
from tests.races.mutations.waiting import PROMOTES
from tests.races.mutations.workflows import FLOWS, SIGNALS

GROUPS = (
    SESSIONS,
    CLAIMS,
    PREEMPTS,
    REPORTS,
    CANCELS,
    PROMOTES,
    FIRES,
    BACKFILLS,
    DEPENDENCIES,
    CALENDARS,
    SUBMITS,
    MEETINGS,
    OTHERS,
    ROLLOUTS,
    TEMPLATES,
    NAMESPACES,
    USERS,
    HOLDS,
    CIRCUITS,
    LIMITS,
    FLOWS,
    SIGNALS,
    EVENTS,
    ARCHIVES,
)
MUTATIONS: dict[str, Mutation] = {mutation.name: mutation for group in GROUPS for mutation in group}
