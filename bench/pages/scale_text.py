"""The texts of docs/SCALE.md, without figures. Nothing here is a measurement."""

INTRODUCTION = """Written by `make scale`, never by hand: every figure is what a command printed, or computed from
that in [sizing.py](../bench/pages/sizing.py). PostgreSQL runs with its shipped settings and fsync on; database,
servers, workers and the bench that makes the load share the cores of one machine. What each setting of PostgreSQL
does and how many connections a server takes is in [PostgreSQL](postgresql.md).
"""

SUSTAINED = """## As fast as it goes

`python -m bench sustain`: a server and a worker as processes of their own, executions submitted over HTTP a thousand
in a request, python functions that do nothing, results stored, commits synced. More is sent only while the queue is
short, so the rate is that of whole lives, from the request to the stored result.
"""

SOAK = """## At the pace of 100 million a day

1,160 executions a second, twenty in a request: of a hundred 90 do nothing, 8 sleep 10 ms and 2 a second. Ten times a
second one more is submitted alone, and it is timed from the request to the first line of the function: its pick-up.
Memory is bounded when its end is near what it was after a fifth of the run, latency flat when the last fifth is near
the first.
"""

STORAGE = """## On disk

From `python -m bench disk`: what a finished execution adds to the store, indexes included, without its payload.
Executions that are submitted together share a parcel, and what they share is stored once: between one and 500 in a
parcel all is possible. Payload is params and result as JSON, before any compression, and comes on top. What is kept
longer than `retention` is dropped by whole days, so the store holds one day more at most. WAL, the database's free
space for vacuum and backups are not in it.
"""

FLEETS = """## More servers and workers on one database

All active, nothing to elect. Here they share one machine with PostgreSQL and the bench, so this table cannot show
a higher rate than the cores allow: when they are all busy with one server and one worker, another one brings nothing
but what it costs. That cost is what the table is for. Where the microseconds an execution stay the same, added
machines bring what they have; where those of the database grow, servers get into each other's way there.

- **A server** brings one core's worth of HTTP, checking and settling, and survival when another one dies. It costs
  PostgreSQL up to ten connections, a heartbeat, and a share of every hint.
- **A worker** brings the cores that its functions need, and costs servers an exchange now and then. It costs PostgreSQL
  no connection.
- **The database** is the one part that is not multiplied by starting another. Its processor time an execution is its
  limit, until its disk's syncs are: a commit takes one, and what comes meanwhile shares the next.
"""

ARITHMETIC = """## The arithmetic

Microseconds of processor time an execution, of all servers, all workers and PostgreSQL with all its processes:
"""

NEEDS = """What a rate takes when no part is planned to be busier than {loaded} of its cores. A server or a worker is
one process and uses one core at most. Worker processes are for functions that do nothing: what a function itself
takes comes on top, and is usually far more (100,000/s of 1 ms each are 100 cores). Cores are those of this machine.
"""

LIMIT = """The database's limit, if nothing but its processor limits it:
"""

SCHEDULES = """Schedules that do not fire cost rows, not time: the scheduler asks an index for what is due. Each fire
makes an execution of its own job, so it is planned at the cost of one that is submitted alone, though it comes
without a request. What deciding the fire takes is not measured here. Many schedules fire on the full minute or hour:
what is due at once is worked off at the rate that the fleet has, so plan for the delay that is accepted.
"""

CELLS = """## Past one database: cells

One PostgreSQL is enough until its processor or its disk is not, by the table above. After that comes a plan, not a
feature: several databases, each with servers of its own, a *cell*, and every namespace in exactly one of them.
Nothing crosses namespaces today: jobs, executions, schedules, keys, queues and limits belong to one, so nothing has
to be invented for consistency between cells.

- **Stays as it is:** the engine, the store, every move and every promise: a cell is a Horae of today, all of it;
  workers, which speak to the servers of their namespace's cell.
- **Routing:** a credential belongs to a namespace: the door looks up its cell, and passes on or redirects what is
  another cell's. The table of namespaces and cells is small, changes seldom and is cached by every server.
- **Ids:** an execution's id carries its instant, not its cell, so a read needs the namespace, which its credential
  brings. An administrator of several namespaces names one, or all cells are asked.
- **Lists and counts over namespaces:** ask every cell and merge: by instant, which ids sort by. A page costs one
  query a cell.
- **Moving a namespace:** pause it, copy it, change the table, go on. `horae db migrate` copies whole stores today; it
  needs a `--namespace`, and the fence of a restore's epoch so that workers of the old cell are refused.
- **One namespace larger than a cell:** is split by its owner into two: queues and limits are not shared across cells.
- **Failure:** a cell that is down takes its namespaces with it and no other.
- **When:** the database needs more than half of the largest machine that is to be had, or its restore takes longer
  than may be, or one tenant must not feel another. Before that: history on faster disks, shorter `retention`, bulk
  submissions, a larger machine.
"""
