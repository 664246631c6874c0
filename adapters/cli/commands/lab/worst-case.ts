import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { readVariant, type WorstCase, worstCase } from '../../../simulator/index.ts';
import { type ClusterFlags, clusterOptions } from '../../flags/simulator-flags.ts';
import { say } from '../../terminal.ts';
import { sizeText, textTable } from '../../text-table.ts';

/** Flags of `lab worst-case`. */
export interface WorstCaseFlags extends ClusterFlags {
  readonly steps: number;
  readonly tasks: number;
  readonly seed: number;
  readonly output?: string;
}

const FEWEST_TASKS = 3;

/** `yardmaster lab worst-case`. */
export async function worstCaseCommand(
  first: string,
  second: string,
  flags: WorstCaseFlags,
): Promise<number> {
  const { steps, seed, tasks, output } = flags;
  const found = await worstCase(await readVariant(first), await readVariant(second), {
    ...clusterOptions(flags),
    steps,
    seed,
    limits: { fewestTasks: FEWEST_TASKS, mostTasks: Math.max(FEWEST_TASKS, tasks) },
    onWorse: ({ step, ratio }) => say(`step ${step}: ${ratio.toFixed(3)}\n`, process.stderr),
  });
  say(`${describe(found, first, second)}\n`);
  if (output === undefined) return 0;
  writeFileSync(output, moduleText(found, basename(output)));
  say(
    `\n${output} has the graph. Run it again with\n  ${again(found, first, second, flags, output)}\n`,
  );
  return 0;
}

function describe({ instance, firstS, secondS, ratio }: WorstCase, first: string, second: string) {
  const rows = instance.tasks.map(({ key, needs = [], durationS = 0, nbytes = 0 }) => {
    return [key, durationS, sizeText(nbytes), needs.join(' ')];
  });
  return [
    `${first} takes ${firstS.toFixed(2)} s where ${second} takes ${secondS.toFixed(2)} s: ${ratio.toFixed(2)} times as long`,
    `links of ${sizeText(instance.bandwidth)}/s, and this graph:`,
    textTable(['task', 'seconds', 'result', 'needs'], rows),
  ].join('\n');
}

function moduleText({ instance, ratio }: WorstCase, name: string): string {
  const rows = instance.tasks.map((task) => `  ${JSON.stringify(task)},`).join('\n');
  return `// Found by "yardmaster lab worst-case": ${ratio.toFixed(2)} times as long.
import { graphWorkload } from 'yardmaster/workloads';

export default graphWorkload(${JSON.stringify(name)}, [
${rows}
]);
`;
}

function again(
  { instance }: WorstCase,
  first: string,
  second: string,
  { workers, threads }: ClusterFlags,
  file: string,
): string {
  return `yardmaster lab compare ${file} --policies ${second},${first} --workers ${workers} --threads ${threads} --bandwidth ${instance.bandwidth} --spread 0 --seeds 1`;
}
