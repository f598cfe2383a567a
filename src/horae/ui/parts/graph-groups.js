// Many steps that stand alike are one: those of one phase with alike upstreams and alike downstreams. Pure.

const LEAST = 8; // steps that make a group
const FEW = 30; // steps that are shown one by one, however alike

/** Classes of steps that cannot be told apart by where they stand: refined until nothing splits any more. */
function classes(nodes, edges) {
  const ups = new Map(nodes.map((node) => [node.step, []]));
  const downs = new Map(nodes.map((node) => [node.step, []]));
  for (const { from, to } of edges) { ups.get(to)?.push(from); downs.get(from)?.push(to); }
  let of = new Map(nodes.map((node) => [node.step, `${node.phase}/${node.kind}`]));
  let count = new Set(of.values()).size;
  for (;;) {
    const names = new Map();
    const told = (steps) => [...new Set(steps.map((step) => of.get(step)))].sort().join();
    const next = new Map(nodes.map(({ step }) => {
      const signature = `${of.get(step)}<${told(ups.get(step))}>${told(downs.get(step))}`;
      if (!names.has(signature)) names.set(signature, String(names.size));
      return [step, names.get(signature)];
    }));
    of = next;
    if (names.size === count) return of;
    count = names.size;
  }
}

function common(names) {
  const [first] = names;
  let head = first.length;
  for (const name of names) while (!name.startsWith(first.slice(0, head))) head -= 1;
  let tail = first.length - head;
  for (const name of names) while (tail > 0 && (name.length < head + tail || !name.endsWith(first.slice(-tail)))) tail -= 1;
  return `${first.slice(0, head)}…${tail > 0 ? first.slice(-tail) : ""}`;
}

const ORDER = ["failed", "running", "waiting", "held", "pending", "cancelled", "success", "skipped"];

function group(members) {
  const count = (...states) => members.filter((one) => states.includes(one.status)).length;
  const [success, failed] = [count("success", "skipped"), count("failed", "cancelled")];
  const began = members.map((one) => one.startedAt).filter(Boolean).sort()[0] ?? null;
  return {
    step: `group:${members[0].step}`, label: `${common(members.map((one) => one.step))}`, phase: members[0].phase, kind: "group", members,
    status: ORDER.find((state) => members.some((one) => one.status === state)) ?? "pending",
    items: { total: members.length, success, failed, remaining: members.length - success - failed },
    critical: members.some((one) => one.critical), startedAt: began, seconds: null,
  };
}

/** A graph with groups for what stands alike; `opened` names groups (by their first step) that are shown step by step. */
export function grouped({ nodes, edges }, opened = new Set()) {
  if (nodes.length <= FEW) return { nodes, edges };
  const of = classes(nodes, edges);
  const by = new Map();
  for (const node of nodes) by.set(of.get(node.step), [...(by.get(of.get(node.step)) ?? []), node]);
  const taken = new Map(); // step -> the group that stands for it
  const shown = [];
  for (const members of by.values()) {
    if (members.length < LEAST || opened.has(members[0].step)) { shown.push(...members); continue; }
    const one = group(members);
    shown.push(one);
    for (const member of members) taken.set(member.step, one.step);
  }
  const kept = new Map();
  for (const { from, to } of edges) {
    const edge = { from: taken.get(from) ?? from, to: taken.get(to) ?? to };
    kept.set(`${edge.from}>${edge.to}`, edge);
  }
  return { nodes: shown, edges: [...kept.values()], taken };
}
