// Where the steps of a graph stand: left to right, one phase after another. Dagre takes its time: of many steps it is not asked.

import { once } from "../core/bring.js";
import { quick } from "./graph-quick.js";

export const WIDE = 184;
export const HIGH = 44;
const GAP = 64; // between phases
const HEAD = 22; // for the name of a phase
const MANY = 120; // steps (or twice as many edges) above which a simpler way is taken

const load = once(() => import("../vendor/dagre.js"));

/** {places: Map(step -> {x, y}) of centres, paths: [{from, to, d}], phases: [{name, x}], width, height}. */
export async function placed({ nodes, edges }) {
  const many = nodes.length > MANY || edges.length > 2 * MANY;
  const dagre = many ? null : await load();
  const phases = [...new Set(nodes.map((node) => node.phase))];
  const parts = phases.map((phase) => nodes.filter((node) => node.phase === phase)).map((some) => (many ? quick(some, edges, { wide: WIDE, high: HIGH }) : of(dagre, some, edges)));
  const height = Math.max(0, ...parts.map((part) => part.height));
  const head = phases.length > 1 ? HEAD : 0;
  const found = { places: new Map(), paths: [], phases: [], width: 0, height: height + head };
  parts.forEach((part, at) => {
    const left = found.width;
    const top = (height - part.height) / 2 + head;
    if (phases.length > 1) found.phases.push({ name: phases[at], x: left, first: at === 0 });
    for (const [step, { x, y }] of part.places) found.places.set(step, { x: x + left, y: y + top });
    for (const path of part.paths) found.paths.push({ ...path, d: curve(path.points.map(({ x, y }) => ({ x: x + left, y: y + top }))) });
    found.width += part.width + (at < parts.length - 1 ? GAP : 0);
  });
  return found;
}

function of(dagre, nodes, edges) {
  const graph = new dagre.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 52 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.step, { width: WIDE, height: HIGH });
  for (const { from, to } of edges) if (graph.hasNode(from) && graph.hasNode(to)) graph.setEdge(from, to);
  dagre.layout(graph);
  const { width, height } = graph.graph();
  return {
    width, height,
    places: nodes.map((node) => [node.step, graph.node(node.step)]),
    paths: graph.edges().map((edge) => ({ from: edge.v, to: edge.w, points: graph.edge(edge).points })),
  };
}

const round = (n) => Math.round(n * 10) / 10;

function curve(points) {
  let d = `M${round(points[0].x)} ${round(points[0].y)}`;
  for (let at = 1; at < points.length; at += 1) {
    const [a, b] = [points[at - 1], points[at]];
    const middle = round((a.x + b.x) / 2);
    d += `C${middle} ${round(a.y)} ${middle} ${round(b.y)} ${round(b.x)} ${round(b.y)}`;
  }
  return d;
}
