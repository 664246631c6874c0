/** The part of `docs/policies-compared.md` that says why a policy wins, and when to take it. */
export const WHICH_POLICY = `## Which to take

From eight to twelve seeds; 0.5 s is what the scheduler assumes of a function that has never run.

| work | take | why |
| --- | --- | --- |
| many short tasks that read a few large results (\`xarray-25\`) | \`queuing/family\` | \`root-ish\` takes the readers for roots, because their group is large and needs fewer than five tasks. They go to all workers, and fetching the sources takes longer than the work. Where the links are ten times as fast, spreading is right |
| neighbours that meet downstream (\`tree\`) | \`queuing/family\`; \`queuing/co-assign\` where all leaves together fit into memory | \`root-ish\` sends each leaf to the worker that is free first, so pairs meet by chance. \`co-assign\` moves least, and holds nothing back |
| many functions, each with few short tasks that have inputs (\`chains\`, \`overlap\`) | [\`scheduler.knowledge\`](persistence.md#what-was-measured) (\`chains\`: 0.74, \`overlap\`: 0.93); or \`stealing/calm\` | with the assumed 0.5 s a steal seems to pay until the first task of each function has ended |
| stencils (\`overlap\`) | \`workerSelection/locality-first\` | it stays with the inputs. Trees and shuffles take up to a tenth longer with it |
| all else | the defaults | no policy was clearly better by 5 % |

\`calm\` is not the default because it steals too late from long queues (1.07 on \`mapreduce:24\`). \`family\` is worse than the
defaults by 2 % at most, but it reads each graph as a whole before the first task starts, which the simulator counts as no time.
`;
