// Where many steps stand, found quickly: ranks by the longest way to each, the order within a rank by its neighbours. Pure.

const SWEEPS = 6;

/** Like dagre's answer, in little time: {width, height, places: [[step, {x, y}]], paths: [{from, to, points}]}. */
export function quick(nodes, edges, { wide, high, across = 52, apart = 14 }) {
  const known = new Set(nodes.map((node) => node.step));
  const kept = edges.filter(({ from, to }) => known.has(from) && known.has(to));
  const ups = new Map(nodes.map((node) => [node.step, []]));
  const downs = new Map(nodes.map((node) => [node.step, []]));
  for (const { from, to } of kept) { ups.get(to).push(from); downs.get(from).push(to); }
  const ranks = ranked(nodes, ups, downs);
  const at = new Map();
  const number = (rank) => rank.forEach((step, place) => at.set(step, place - (rank.length - 1) / 2));
  ranks.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const beside = sweep % 2 ? downs : ups;
    for (const rank of sweep % 2 ? [...ranks].reverse() : ranks) {
      const middle = new Map(rank.map((step) => [step, mean(beside.get(step).map((one) => at.get(one))) ?? at.get(step)]));
      rank.sort((a, b) => middle.get(a) - middle.get(b));
      number(rank);
    }
  }
  const tallest = Math.max(1, ...ranks.map((rank) => rank.length));
  const height = tallest * (high + apart) - apart;
  const places = new Map();
  ranks.forEach((rank, column) => { for (const step of rank) places.set(step, { x: column * (wide + across) + wide / 2, y: height / 2 + at.get(step) * (high + apart) }); });
  const paths = kept.map(({ from, to }) => ({ from, to, points: [{ x: places.get(from).x + wide / 2, y: places.get(from).y }, { x: places.get(to).x - wide / 2, y: places.get(to).y }] }));
  return { width: ranks.length * (wide + across) - across, height, places: [...places], paths };
}

const mean = (numbers) => (numbers.length ? numbers.reduce((sum, one) => sum + one, 0) / numbers.length : null);

function ranked(nodes, ups, downs) {
  const missing = new Map(nodes.map(({ step }) => [step, ups.get(step).length]));
  const depth = new Map();
  const ready = nodes.map((node) => node.step).filter((step) => missing.get(step) === 0);
  for (let place = 0; place < ready.length; place += 1) {
    const step = ready[place];
    depth.set(step, Math.max(0, ...ups.get(step).map((one) => depth.get(one) + 1)));
    for (const next of downs.get(step)) {
      missing.set(next, missing.get(next) - 1);
      if (missing.get(next) === 0) ready.push(next);
    }
  }
  const ranks = [];
  for (const step of ready) (ranks[depth.get(step)] ??= []).push(step);
  return ranks;
}
