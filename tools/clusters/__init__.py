"""A PostgreSQL cluster with automatic failover, for tests and proofs: Patroni, etcd and haproxy, all on the loopback.

`cluster` starts and breaks it, `members` runs one PostgreSQL under Patroni, `relay` is the network between the parts,
which can be cut, and `programs` finds the programs. `tools/cluster` is its command.
"""
