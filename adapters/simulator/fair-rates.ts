/** One direction of the link of a worker, or the backbone. */
export interface Link {
  /** Bytes per second. */
  readonly capacity: number;
  /** What shares it. */
  readonly flows: Set<Flow>;
  /** What passes without sharing. */
  readonly alone: Set<Flow>;
  /** While rates are computed: what is left for the flows without a rate, and how many these are. */
  left: number;
  open: number;
}

/** A transfer under way. */
export interface Flow {
  readonly links: readonly Link[];
  /** Bytes that are still to come, as of `sinceMs`. */
  bytes: number;
  /** Bytes per second. */
  rate: number;
  sinceMs: number;
}

/** All flows whose rates may depend on what has changed at these links. */
export function flowsAround(changed: Iterable<Link>): { links: Link[]; flows: Flow[] } {
  const links = [...changed];
  const known = new Set(links);
  const flows = new Set<Flow>();
  for (const link of links) {
    for (const flow of link.flows) {
      if (flows.has(flow)) continue;
      flows.add(flow);
      for (const other of flow.links) {
        if (known.has(other)) continue;
        known.add(other);
        links.push(other);
      }
    }
  }
  return { links, flows: [...flows] };
}

/**
 * Gives each flow its rate by progressive filling: the link whose share is the smallest fixes the rate of its flows,
 * then the next one, until all have a rate. O(links² + flows) at worst, for links that are connected by flows.
 */
export function shareFairly(links: readonly Link[], flows: readonly Flow[]): void {
  for (const link of links) {
    link.left = link.capacity;
    link.open = link.flows.size;
  }
  for (const flow of flows) flow.rate = -1;
  let rest = links.filter((link) => link.open > 0);
  while (rest.length > 0) {
    let tightest = rest[0] as Link;
    for (const link of rest) {
      if (link.left * tightest.open < tightest.left * link.open) tightest = link;
    }
    const rate = Math.max(0, tightest.left / tightest.open);
    for (const flow of tightest.flows) if (flow.rate < 0) fix(flow, rate);
    rest = rest.filter((link) => link.open > 0);
  }
}

function fix(flow: Flow, rate: number): void {
  flow.rate = rate;
  for (const link of flow.links) {
    link.left -= rate;
    link.open--;
  }
}
