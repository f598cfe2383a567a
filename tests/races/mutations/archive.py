"""Guards of the archive."""

from tests.races.mutating import sql
from tests.races.mutating.mutation import gone

ARCHIVES = (
    gone(
        "archiving does not lock the executions",
        sql.unlock("lock_parcels_to_archive"),
        by="archive / archive, the same executions",
    ),
    gone(
        "a file is recorded although an execution in it was erased",
        sql.drop("archive_is_sound", "archive", instead="$2 > 0"),
        by="archive / erasure from the same file",
    ),
    gone(
        "a file replaces a newer one",
        sql.drop("archive_lies_there", "location", instead="$2 <> ''"),
        by="erasure / erasure, from one file",
    ),
    gone(
        "a file is not locked during its replacement",
        sql.unlock("archive_lies_there"),
        by="erasure / erasure, from one file",
    ),
)
