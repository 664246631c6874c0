/** What a reader takes along from the demo. */
import type { Why } from '../../../core/api/index.ts';

/** One sentence: where a task ran, and the rule that chose; of the task with most candidates. */
export function whyLine(stories: readonly Why[], nameOf: (address: string) => string): string {
  const [first] = stories
    .flatMap(({ key, decisions }) => {
      const placement = decisions.findLast(({ kind }) => kind === 'placement');
      return placement === undefined ? [] : [{ key, placement }];
    })
    .toSorted((a, b) => b.placement.candidateCount - a.placement.candidateCount);
  if (first === undefined) return stories[0]?.now[0] ?? 'nothing is known of it any more';
  const { key, placement } = first;
  const { outcome, rule, policy } = placement;
  return `${key} ran on ${nameOf(outcome)}: ${rule} (policy ${policy})`;
}

/** In pieces: the bundler replaces it where it stands as a whole. */
const OWN_URL = ['import', 'meta', 'url'].join('.');

/** A program for a file of its own. */
export const PASTE = `import { isMainThread } from 'node:worker_threads';
import { defineTasks, LocalCluster } from 'yardmaster';
export const { square, sum } = defineTasks(${OWN_URL}, {
  square: (x) => x * x, sum: (numbers) => numbers.reduce((total, x) => total + x, 0),
});
if (isMainThread) { // workers import this file for its tasks
  const cluster = await LocalCluster.start({ workers: 2 }), client = await cluster.client();
  const total = () => client.submit(sum, client.map(square, [1, 2, 3, 4])).result();
  console.log(await client.report('report.html', total)); // 30, and a page about how it went
  await cluster.close(); }`;
