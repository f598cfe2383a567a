"""Guards of the archive."""

from tests.races.mutating import sql
from tests.races.mutating.mutation import gone

ARCHIVES = (
    gone(
        "who archives does not lock what goes",
        sql.unlock("lock_parcels_to_archive"),
        by="archive / archive, the same executions",
    ),
    gone(
        "a file is named although something in it was erased",
        sql.drop("archive_is_sound", "archive", instead="$2 > 0"),
        by="archive / erasure of what is in the file",
    ),
    gone(
        "a file is put where another lies by now",
        sql.drop("archive_lies_there", "location", instead="$2 <> ''"),
        by="erasure / erasure, from one file",
    ),
    gone(
        "a file is not locked by who puts it elsewhere",
        sql.unlock("archive_lies_there"),
        by="erasure / erasure, from one file",
    ),
)
