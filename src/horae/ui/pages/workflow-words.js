// Why a step of a workflow stands as it does, in words.

const REASONS = { when: "its condition did not hold", join: "what it comes after ended otherwise", switch: "another branch was taken", workflow: "the workflow ended before", rejected: "it was rejected", timeout: "nobody answered, nothing came in time", tolerance: "too many items failed", paused: "the workflow is paused", breakpoint: "it was to stop here" };

/** Why a step stands as it does, in words. */
export function why(node) {
  if (node.error) return `${node.error.type}: ${node.error.message ?? ""}`;
  const wait = node.waitsFor;
  if (node.status === "waiting" && wait) return wait.name ? `for the ${node.kind} ${wait.name}` : [wait.message, wait.roles?.length ? `asked of ${wait.roles.join(", ")}` : ""].filter(Boolean).join("; ");
  return REASONS[node.reason] ?? node.reason ?? "";
}
