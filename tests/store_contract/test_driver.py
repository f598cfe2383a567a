"""The promises of a driver about scripts, on every database."""

import asyncio
from uuid import UUID

import pytest

from horae.env import Env
from horae.errors import Busy, Conflict
from horae.store.driver import Driver, one
from horae.store.script import (
    Again,
    Among,
    ColumnType,
    Fetch,
    ForEach,
    Insert,
    Lock,
    Op,
    Provided,
    Rows,
    Script,
    Statement,
    Together,
)

PUT = Statement(
    "put", "INSERT INTO store (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
GET = Statement("get", "SELECT value FROM store WHERE key = $1")
HOLDERS = (("key", "text"), ("parcel", "uuid"), ("lo", "int"))


async def get(driver: Driver, key: str) -> str | None:
    rows = await driver.read(one(GET, key))
    return rows[0][0] if rows else None


async def test_a_script_gets_its_rows_and_returns_its_result(driver: Driver):
    def script() -> Script[str]:
        yield Fetch(PUT, ("a", "1"))
        rows = yield Fetch(GET, ("a",))
        return "found " + rows[0][0]

    assert await driver.write(script) == "found 1"
    assert await get(driver, "a") == "1"


async def test_a_script_that_raises_changes_nothing(driver: Driver):
    def script() -> Script[None]:
        yield Fetch(PUT, ("a", "1"))
        raise Conflict("No.")

    with pytest.raises(Conflict):
        await driver.write(script)

    assert await get(driver, "a") is None


async def test_one_failing_script_among_many_fails_alone(driver: Driver):
    def put(number: int) -> Script[int]:
        yield Fetch(PUT, (f"k{number}", "x"))
        if number == 13:
            yield Insert("store", (("key", "text"), ("value", "text")), [("epoch", "2")])
        return number

    results = await asyncio.gather(
        *(driver.write(lambda n=n: put(n)) for n in range(64)), return_exceptions=True
    )  # fmt: skip

    assert [n for n, result in enumerate(results) if result != n] == [13]
    assert isinstance(results[13], Exception)
    assert [await get(driver, f"k{n}") for n in (12, 13, 14)] == ["x", None, "x"]


async def test_again_repeats_the_script_from_its_beginning(driver: Driver):
    tries = []

    def script() -> Script[int]:
        tries.append(1)
        yield Fetch(PUT, (f"try{len(tries)}", "x"))
        if len(tries) < 3:
            raise Again
        return len(tries)

    assert await driver.write(script) == 3
    assert [await get(driver, f"try{n}") for n in (1, 2, 3)] == [None, None, "x"]


async def test_a_script_that_loses_every_race_gets_busy(driver: Driver):
    def script() -> Script[None]:
        yield Fetch(GET, ("a",))
        raise Again

    with pytest.raises(Busy):
        await driver.write(script)


async def test_for_each_joins_given_rows_in_their_order(driver: Driver, env: Env):
    ids = [env.new_id() for _ in range(3)]
    found = Statement("found", "SELECT given.lo, h.key, h.parcel FROM given JOIN holders h ON h.parcel = given.parcel")

    def script() -> Script[Rows]:
        yield Insert("holders", HOLDERS, [(f"k{n}", id, n) for n, id in enumerate(ids)])
        return (yield ForEach(found, (("parcel", "uuid"), ("lo", "int")), [(ids[2], 20), (ids[0], 10)]))

    assert await driver.write(script) == [(20, "k2", ids[2]), (10, "k0", ids[0])]


async def test_reading_many_rows_at_once_equals_reading_each(driver: Driver):
    keys = [(f"k{i}", i) for i in range(200)]
    text = "SELECT s.value, given.number FROM given JOIN store s ON s.key = given.key"
    apart, at_once = Statement("apart", text), Statement("at once", text, at_once=True)
    columns: tuple[tuple[str, ColumnType], ...] = (("key", "text"), ("number", "int"))

    def script() -> Script[list[tuple[Rows, Rows]]]:
        yield Insert("store", (("key", "text"), ("value", "text")), [(key, f"v{i}") for key, i in keys])
        found = []
        for count in (0, 1, 2, 3, 64, 100, 200):
            given = [*keys[:count], ("nobody", -1)]
            found.append(((yield ForEach(apart, columns, given)), (yield ForEach(at_once, columns, given))))
        return found

    for one_by_one, together in await driver.write(script):
        assert sorted(one_by_one) == sorted(together)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE holders SET key = $3 FROM given WHERE holders.parcel = given.parcel AND holders.lo = given.lo",
        "UPDATE holders SET key = $3 FROM given g WHERE holders.parcel = g.parcel AND holders.lo = g.lo",
        "UPDATE holders SET key = $3 WHERE (parcel, lo) IN (SELECT parcel, lo FROM given)",
    ],
)
async def test_for_each_updates(driver: Driver, env: Env, text: str):
    ids = [env.new_id() for _ in range(3)]

    def script() -> Script[Rows]:
        yield Insert("holders", HOLDERS, [("k", id, 0) for id in ids])
        yield ForEach(
            Statement("rename", text), (("parcel", "uuid"), ("lo", "int")), [(ids[0], 0), (ids[1], 9)], ("n",)
        )
        return (yield Fetch(Statement("all", "SELECT parcel FROM holders WHERE key = 'n'")))

    assert await driver.write(script) == [(ids[0],)]


@pytest.mark.parametrize(
    "text",
    [
        (
            "DELETE FROM holders USING given WHERE holders.parcel = given.parcel AND holders.lo >= given.lo"
            " RETURNING holders.parcel, holders.lo"
        ),
        (
            "DELETE FROM holders USING given AS g WHERE holders.parcel = g.parcel AND holders.lo >= g.lo"
            " RETURNING holders.parcel, holders.lo"
        ),
        (
            "DELETE FROM holders WHERE EXISTS (SELECT 1 FROM given WHERE holders.parcel = given.parcel"
            " AND holders.lo >= given.lo) RETURNING parcel, lo"
        ),
    ],
)
async def test_for_each_deletes_and_returns(driver: Driver, env: Env, text: str):
    ids = [env.new_id() for _ in range(3)]

    def script() -> Script[tuple[Rows, Rows]]:
        yield Insert("holders", HOLDERS, [("k", id, 0) for id in ids])
        drop = Statement("drop", text)
        gone = yield ForEach(drop, (("parcel", "uuid"), ("lo", "int")), [(ids[0], 0), (ids[1], 1)])
        return gone, (yield Fetch(Statement("all", "SELECT parcel FROM holders")))

    gone, left = await driver.write(script)
    assert gone == [(ids[0], 0)]
    assert sorted(left) == [(ids[1],), (ids[2],)]


async def test_many_rows_are_inserted_like_few(driver: Driver, env: Env):
    ids = [env.new_id() for _ in range(500)]
    columns = (("key", "text"), ("value", "text"))
    counted = Statement("counted", "SELECT count(*), max(value) FROM store WHERE key LIKE 'many-%'")

    def script() -> Script[Rows]:
        yield Insert("holders", HOLDERS, [("k\t\\N", id, n) for n, id in enumerate(ids)])
        yield Together(
            [
                Insert("store", columns, [(f"many-{n}", "\u20ac") for n in range(300)]),
                Insert("store", columns, [("few", "1")]),
            ]
        )
        return (yield Fetch(Statement("held", "SELECT key, parcel, lo FROM holders ORDER BY lo")))

    assert await driver.write(script) == [("k\t\\N", id, n) for n, id in enumerate(ids)]
    assert await driver.read(one(counted)) == [(300, "\u20ac")]
    assert await get(driver, "few") == "1"


async def test_an_insert_of_many_rows_with_a_conflict_changes_nothing(driver: Driver):
    columns = (("key", "text"), ("value", "text"))

    def script() -> Script[None]:
        yield Insert("store", columns, [(f"many-{n % 499}", "1") for n in range(500)])

    with pytest.raises(Exception, match=r"(?i)unique"):
        await driver.write(script)
    assert await get(driver, "many-0") is None


async def test_changes_made_together_all_happen(driver: Driver, env: Env):
    ids = [env.new_id() for _ in range(3)]
    columns = (("key", "text"), ("value", "text"))
    drop = Statement("drop", "DELETE FROM holders WHERE (parcel, lo) IN (SELECT parcel, lo FROM given)")
    rename = Statement("rename", "UPDATE store SET value = $2 WHERE key = $1")
    tell = Statement("tell", "UPDATE holders SET key = given.key FROM given WHERE holders.parcel = given.parcel")

    def script() -> Script[tuple[Rows, Rows]]:
        yield Insert("holders", HOLDERS, [("k", id, 0) for id in ids])
        yield Insert("store", columns, [("a", "1")])
        nothing = yield Together(
            [
                ForEach(drop, (("parcel", "uuid"), ("lo", "int")), [(ids[0], 0)]),
                Insert("holders", HOLDERS, []),
                Fetch(rename, ("a", "2")),
                Insert("store", columns, [("b", "3"), ("c", "4")]),
                ForEach(tell, (("parcel", "uuid"), ("key", "text")), [(ids[1], "told")]),
            ]
        )
        assert nothing == []
        assert (yield Together([])) == []
        assert (yield Together([Insert("store", columns, [("d", "5")])])) == []
        kept = yield Fetch(Statement("kept", "SELECT key, parcel FROM holders ORDER BY key DESC"))
        return kept, (
            yield Fetch(Statement("all", "SELECT key, value FROM store WHERE key IN ('a','b','c','d') ORDER BY key"))
        )

    before = driver.statements.copy()
    kept, told = await driver.write(script)
    assert kept == [("told", ids[1]), ("k", ids[2])]
    assert told == [("a", "2"), ("b", "3"), ("c", "4"), ("d", "5")]
    counted = driver.statements - before
    assert (counted["insert store"], counted["drop"], counted["rename"]) == (3, 1, 1)


async def test_given_rows_may_hold_nulls_and_there_may_be_none(driver: Driver, env: Env):
    job = env.new_id()
    columns = (("trigger_id", "uuid"), ("job", "uuid"), ("namespace", "int"), ("next_fire_at", "bigint"),
               ("decided_through", "bigint"))  # fmt: skip
    ids = [env.new_id(), env.new_id()]

    def script() -> Script[tuple[Rows, Rows]]:
        none = yield Insert("timers", columns, [], returning="job")
        rows = yield Insert(
            "timers", columns, [(ids[0], job, 1, None, 0), (ids[1], job, 1, 5, 0)], returning="next_fire_at"
        )
        return none, rows

    assert await driver.write(script) == ([], [(None,), (5,)])


async def test_insert_returns_only_the_inserted_rows(driver: Driver):
    columns = (("key", "text"), ("value", "text"))

    def script(*keys: str) -> Script[Rows]:
        return (yield Insert("store", columns, [(key, "x") for key in keys], "ON CONFLICT (key) DO NOTHING", "key"))

    assert await driver.write(lambda: script("a")) == [("a",)]
    assert await driver.write(lambda: script("a", "b", "c")) == [("b",), ("c",)]


async def test_ids_booleans_bytes_and_floats_keep_their_types(driver: Driver, env: Env):
    parcel, job, session = env.new_id(), env.new_id(), env.new_id()
    columns = (("parcel", "uuid"), ("lo", "int"), ("hi", "int"), ("job", "uuid"), ("queue", "int"),
               ("namespace", "int"), ("attempt", "int"), ("failures", "int"), ("losses", "int"),
               ("width", "int"), ("reason", "text"))  # fmt: skip
    circuits = (("job", "uuid"), ("key", "text"), ("state", "text"), ("era", "int"), ("since", "bigint"),
                ("forced", "bool"), ("cause", "text"), ("changed_by", "text"), ("probes", "text"))  # fmt: skip

    def script() -> Script[list[Rows]]:
        yield Insert("waiting", columns, [(parcel, 0, 1, job, 1, 1, 0, 0, 0, 2, "")])
        yield Insert("circuits", circuits, [(job, "", "closed", 1, 0, True, "", "", "[]")])
        yield Insert("blobs", (("parcel", "uuid"), ("item", "int"), ("content", "bytea")), [(parcel, 0, parcel.bytes)])
        least = Statement("least", "SELECT min(lo) AS lo, job FROM waiting GROUP BY job")
        named = Statement("named", "SELECT w.parcel AS which, given.id FROM given JOIN waiting w ON true")
        return [
            (
                yield Fetch(
                    Statement(
                        "w", "SELECT w.parcel, c.forced, w.wake_at FROM waiting w JOIN circuits c ON c.job = w.job"
                    )
                )
            ),
            (yield Fetch(Statement("b", "SELECT content FROM blobs WHERE parcel = $1"), (parcel,))),
            (yield Fetch(Statement("n", "SELECT weight FROM namespaces"))),
            (yield Fetch(least)),
            (yield ForEach(named, (("id", "uuid"),), [(session,)])),
        ]

    waiting, blobs, weights, leasts, nameds = await driver.write(script)
    assert waiting == [(parcel, True, None)]
    assert isinstance(waiting[0][0], UUID)
    assert isinstance(waiting[0][1], bool)
    assert blobs == [(parcel.bytes,)]
    assert weights == [(1.0,)]
    assert leasts == [(0, job)]
    assert nameds == [(parcel, session)]


async def test_a_statement_over_a_set_of_ids_runs_once_for_all(driver: Driver, env: Env):
    ids = [env.new_id() for _ in range(5)]
    found = Statement(
        "found",
        "SELECT parcel, key FROM holders WHERE parcel = ANY($1) AND lo < $2 AND (lo > $3 OR parcel = ANY($1))"
        " ORDER BY key LIMIT $3",
    )

    def script() -> Script[Rows]:
        yield Insert("holders", HOLDERS, [(f"k{n}", id, n) for n, id in enumerate(ids)])
        none = yield Among(found, [], (4, 9))
        some = yield Among(found, ids[1:4], (3, 9))
        return none + some + (yield Among(found, ids[:1], (4, 9)))

    assert await driver.write(script) == [(ids[1], "k1"), (ids[2], "k2"), (ids[0], "k0")]
    assert driver.statements["found"] == 3


async def test_a_read_sees_what_was_written_and_is_counted(driver: Driver):
    await driver.write(one(PUT, "a", "1"))

    assert await get(driver, "a") == "1"
    assert driver.statements["put"] == 1
    assert driver.statements["get"] == 1


async def test_the_hook_runs_before_each_statement_and_others_wait_for_their_turn(driver: Driver):
    seen: list[str] = []
    going, stopped = asyncio.Event(), asyncio.Event()

    async def before(op: Op) -> None:
        assert isinstance(op, Fetch)
        seen.append(op.statement.name)
        if op.statement.name == "get":
            stopped.set()
            await going.wait()

    def script() -> Script[Rows]:
        yield Fetch(PUT, ("a", "1"))
        return (yield Fetch(GET, ("a",)))

    driver.before = before
    first = asyncio.create_task(driver.write(script))
    await stopped.wait()
    driver.before = None
    second = asyncio.create_task(driver.write(one(PUT, "a", "2")))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(second), 0.05)

    assert seen == ["put", "get"]

    going.set()
    assert await first == [("1",)]
    await second
    assert await get(driver, "a") == "2"


async def test_a_cancelled_write_leaves_nothing_behind(driver: Driver):
    stopped = asyncio.Event()

    async def before(op: Op) -> None:
        if isinstance(op, Fetch) and op.statement.name == "get":
            stopped.set()
            await asyncio.Event().wait()

    def script() -> Script[None]:
        yield Fetch(PUT, ("a", "1"))
        yield Fetch(GET, ("a",))

    driver.before = before
    task = asyncio.create_task(driver.write(script))
    await stopped.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    driver.before = None
    await driver.write(one(PUT, "b", "1"))
    assert await get(driver, "a") is None


async def test_locks_are_taken_by_name(driver: Driver):
    def script() -> Script[str]:
        yield Lock(("b", "a", "b"))
        return (yield Fetch(GET, ("epoch",)))[0][0]  # type: ignore[no-any-return]

    assert await driver.write(script) == "1"


async def test_hints_reach_every_listener(driver: Driver):
    heard: list[str] = []
    both = asyncio.Event()

    def hear(payload: str) -> None:
        heard.append(payload)
        if len(heard) == 2:
            both.set()

    await driver.listen(hear)
    await driver.notify("lane 1")
    await driver.notify("lane 2")
    await asyncio.wait_for(both.wait(), 30)

    assert heard == ["lane 1", "lane 2"]


async def test_the_store_returns_the_time_and_answers_a_ping(driver: Driver, env: Env):
    await driver.ping()
    now = await driver.server_time()
    assert now == env.now() if driver.dialect == "sqlite" else now > 1_700_000_000_000_000


async def test_a_first_start_makes_the_default_namespace_and_queue(driver: Driver):
    await driver.migrate()
    rows = await driver.read(one(Statement("q", "SELECT q.id, n.id, q.name FROM queues q JOIN namespaces n ON true")))
    assert rows == [(1, 1, "default")]
    assert await get(driver, "epoch") == "1"
    assert UUID(await get(driver, "installation"))


FOUND = Statement("found", "SELECT s.key FROM given JOIN store s ON s.key = given.key AND s.value = given.value")
RENAME = Statement("rename", "UPDATE store SET value = given.value FROM given WHERE store.key = given.key")
PAIR = (("key", "text"), ("value", "text"))


def provided(*pairs: tuple[str, str]) -> Provided:
    return Provided(
        [ForEach(FOUND, PAIR, pairs)],
        [Insert("store", PAIR, [("c", "3"), ("d", "4")]), ForEach(RENAME, PAIR, [("a", "9")])],
    )


async def test_changes_are_made_when_every_condition_finds_its_rows(driver: Driver):
    await driver.write(one(PUT, "a", "1"))
    await driver.write(one(PUT, "b", "2"))

    assert await driver.change(provided(("a", "1"), ("b", "2")))

    assert [await get(driver, key) for key in "abcd"] == ["9", "2", "3", "4"]


async def test_nothing_is_changed_when_a_condition_misses_one(driver: Driver):
    await driver.write(one(PUT, "a", "1"))

    assert not await driver.change(provided(("a", "1"), ("b", "2")))
    assert [await get(driver, key) for key in "abcd"] == ["1", None, None, None]


async def test_a_change_that_fails_leaves_nothing(driver: Driver):
    await driver.write(one(PUT, "a", "1"))
    await driver.write(one(PUT, "d", "x"))

    with pytest.raises(Exception, match=r"(?i)unique"):
        await driver.change(provided(("a", "1")))

    assert [await get(driver, key) for key in "acd"] == ["1", None, "x"]
    assert await driver.write(one(PUT, "e", "5")) is not None
