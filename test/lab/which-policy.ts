/** The part of `docs/policies-compared.md` that says why a policy wins, and when to take it. */
export const WHICH_POLICY = `## Which to take

Means of eight to twelve seeds; "0.5 s" is what the scheduler assumes of a function that has never run.

| work | take | why |
| --- | --- | --- |
| many short tasks that read a few large results (\`xarray-25\`) | \`queuing/family\` | \`root-ish\` takes the readers for roots: their group is large and needs fewer than five tasks. So they go to all workers, and each fetches all sources, which takes longer than the work: 113 MB and 0.91 s, with \`family\` nothing moves and 0.29 s. Where the links are ten times as fast, spreading is right: 0.14 s beside 0.29 s |
| neighbours that meet downstream (\`tree\`) | \`queuing/family\`; \`queuing/co-assign\` where all leaves together fit into memory | \`root-ish\` sends each leaf to the worker that is free first, so pairs meet by chance: 1.19 GB move, 0.66 GB with \`family\` (0.91 of the time), 0.09 GB with \`co-assign\` (0.79), which holds nothing back |
| many functions, each with few short tasks that have inputs (\`chains\`, \`overlap\`) | the defaults, and \`scheduler.unknownTaskDuration\` as long as such a task takes; or \`stealing/calm\` | a steal is weighed by what a task takes. With 0.5 s instead of 50 ms it seems to pay, the inputs move, and the chains are no longer spread evenly: 1.32 s; with \`unknownTaskDuration: 50ms\` 0.98 s, as with \`calm\`. \`overlap\`: 4.01 and 3.72 s with 100 ms. Tasks of one function, as most are, have this problem only until the first has ended |
| stencils (\`overlap\`) | \`workerSelection/locality-first\` | it stays with the inputs: 1.42 GB instead of 1.82, 0.82 of the time. Trees and shuffles take up to a tenth longer with it |
| all else | the defaults | no policy was clearly better by 5 %. What \`locality-first\` wins on \`join-1-1S-1H\` below is chance: 0.98 with twelve |

\`calm\` is not the default because it steals too late from long queues: 1.03 on \`bag-25K-10\`, \`join-1-1S-1H\` and \`vectorizer:60\`,
1.07 on \`mapreduce:24\`. \`family\` is worse than the defaults by 2 % at most (\`shuffle\`), and 0.90 in the geometric mean, 0.99
without \`xarray-25\`; but it reads each graph as a whole before the first task starts, which the simulator counts as no time.
`;
