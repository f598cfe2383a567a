"""Run every recorded attack and write the results: `tools/security`, into docs/RESULTS-security.md.

With `--before FOLDER`, a clone of an earlier commit, also measure the cost of security: the throughput of both, in
turn.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

import msgspec

from bench.kit.results import machine
from horae.model.tenancy.principal import ROLES
from horae.server.routes.table import ROUTES

PAGE = Path("docs/RESULTS-security.md")
AREAS = {
    "test_matrix": "Roles: every route by every role, and every notation of a path",
    "test_scopes": "Keys restricted to some queues and jobs",
    "test_keys": "Keys: rotation, revocation, content of a database dump",
    "test_commands": "The permission to define commands, on every route",
    "test_tenants": "Tenants: foreign ids in path, query, body, batch, report and stream",
    "test_people": "Users: passwords, sessions, CSRF, identity providers",
    "test_secrets": "Secrets: a canary through every sink",
    "test_sensitive": "Sealed params and results",
    "test_audit_log": "The audit log: delete, edit, reorder, cut",
    "test_outbound": "Requests to private addresses: notations, redirects, DNS rebinding",
    "test_poison": "Commands: injection, fork bombs, memory, output, users",
    "test_tls": "TLS: certificates of servers and workers",
    "test_slow_clients": "Slow clients",
    "test_bounds": "The memory that one connection may use",
    "test_smuggling": "Request smuggling",
    "test_enrolment": "Enrolment of workers",
    "test_rates": "Rates of keys",
    "test_bodies": "Endless bodies, and bodies with a false length",
    "test_random_requests": "Random requests, without a credential and with a viewer's",
    "test_erasure": "Erasing a person's data",
    "test_namespace_erasure": "Erasing a tenant: a canary in every table",
    "test_approvals": "Approvals",
    "test_seams": "Seams between the parts of the trust model",
    "test_source": "The source: no shell, no SQL built at run time",
}
FOLDERS = ["tests/security", "tests/server/http"]
HEAD = """# Security: results

Written by a command, not by hand. Every test in `tests/security/` and `tests/server/http/` with the long versions
(`HORAE_PROVE=1`), on real sockets, real processes and both stores where a store matters. The threat behind each line
is in the [threat model](threat-model.md).
"""


def run_tests(tests: list[str], *, quick: bool) -> dict[str, list[int]]:
    """Return for each file the number of tests, of failed and skipped ones, and their milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n2",
            "--timeout=900",
            f"--junitxml={report}",
            *tests,
        ]
        subprocess.run(command, env={**os.environ, **({} if quick else {"HORAE_PROVE": "1"})}, check=False)
        found: dict[str, list[int]] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            file = next(part for part in case.get("classname", "").split(".") if part.startswith("test_"))
            row = found.setdefault(file, [0, 0, 0, 0])
            row[0] += 1
            row[1] += any(child.tag in ("failure", "error") for child in case)
            row[2] += any(child.tag == "skipped" for child in case)
            row[3] += round(float(case.get("time", 0)) * 1000)
    return found


def throughput(source: Path, store: str) -> dict[str, float]:
    """Return the executions per second of each way, with the code in a folder."""
    command = [sys.executable, "-m", "bench", "throughput", "--repeats", "1", "--store", store]
    env = {**os.environ, "PYTHONPATH": str((source / "src").resolve())}
    told = subprocess.run([*command, "-o", "jsonl"], cwd=source, env=env, capture_output=True, check=True).stdout
    lines = [msgspec.json.decode(line) for line in told.splitlines() if line.startswith(b"{")]
    return {line["case"]: line["value"] for line in lines if line["metric"] == "executions"}


def costs(before: Path, pairs: int) -> list[str]:
    """Measure both in turn, so that other load on the machine affects both."""
    rates: dict[str, list[tuple[float, float]]] = {}
    for store in ("sqlite://", "postgresql://"):
        for _ in range(pairs):
            old, new = throughput(before, store), throughput(Path(), store)
            for case, rate in old.items():
                rates.setdefault(case, []).append((rate, new[case]))
    lines = [
        "",
        "## What it costs",
        "",
        f"`python -m bench throughput` before (commit {commit(before)}) and now, in turn,",
    ]
    lines += [
        f"{pairs} pairs. Asked: a ratio of at least 0.9.",
        "",
        "| case | before | now | median ratio |",
        "|---|---:|---:|---:|",
    ]
    for case, found in rates.items():
        ratio = median(new / old for old, new in found)
        middle = [median(side) for side in zip(*found, strict=True)]
        lines.append(f"| {case} | {middle[0]:,.0f}/s | {middle[1]:,.0f}/s | {ratio:.2f} |")
    return lines


def commit(folder: Path = Path()) -> str:
    told = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=folder, capture_output=True, check=True)
    return told.stdout.decode().strip()


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--before", type=Path, help="A clone of an earlier commit to compare throughput with.")
    asked.add_argument("--pairs", type=int, default=3)
    asked.add_argument("--page", type=Path, default=PAGE)
    asked.add_argument("--quick", action="store_true", help="Without the long versions: to see that it works.")
    asked.add_argument("tests", nargs="*", default=FOLDERS, help="Files, instead of all of them.")
    options = asked.parse_args()
    found, at = run_tests(options.tests, quick=options.quick), machine()
    said = " --quick" if options.quick else ""
    said += f" --before DIR --pairs {options.pairs}" if options.before else ""
    tests, failed, skipped = (sum(row[i] for row in found.values()) for i in range(3))
    lines = [
        HEAD,
        f"- **{tests - skipped:,} tests, {failed} failed{f', {skipped} not run' if skipped else ''}**",
        f"- {len(ROUTES)} routes x {len(ROLES) + 2} callers (five roles, nobody, a wrong key)",
        f"- Command: `tools/security{said}`",
        f"- Commit: {commit()}",
        f"- Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"- Machine: {at['cores']} cores, {at['memoryGb']:.0f} GB, {at['cpu']}, {at['system']}, Python {at['python']}",
        "",
        "| area | tests | failed | not run | seconds |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, row in sorted(found.items(), key=lambda item: list(AREAS).index(item[0]) if item[0] in AREAS else 99):
        lines.append(f"| {AREAS.get(name, name)} | {row[0]} | {row[1]} | {row[2]} | {row[3] / 1000:.0f} |")
    lines += costs(options.before, options.pairs) if options.before else []
    options.page.write_text("\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
