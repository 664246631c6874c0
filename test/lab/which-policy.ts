/** The part of `docs/policies-compared.md` that says where another policy wins, and how the defaults do on other graphs. */
export const WHICH_POLICY = `## Which to take

| work | take | measured |
| --- | --- | --- |
| trees whose leaves together fit into memory (\`tree\`) | \`queuing/co-assign\` | 0.85 of the makespan; it holds nothing back |
| shuffles (\`shuffle\`) | \`workerSelection/balanced\` | 0.84, and 1.44 on \`chains\`: it leaves inputs for threads that are free |
| many short maps into few reducers (\`mapreduce\`) | \`stealing/dask\` | 0.90, and 1.38 on \`chains\`: it moves tasks on the guess that they are long |
| functions that ran before | [\`scheduler.knowledge\`](persistence.md#what-was-measured) | until a function has run, a task is taken for 0.5 s |
| all else | the defaults | no policy was clearly better by 5 % |

## Graphs of other people

\`lab corpus\` on 26 graphs of Estee and WfInstances with up to 200 tasks (the constants of the defaults were tried on 19 of
them) in eight settings, each figure a geometric mean relative to \`policies: dask\` with its 95 % interval over the graphs. In all: makespan 0.88 (0.82 to 0.95),
bytes moved 0.60 (0.47 to 0.76), peak of a worker 1.06 (1.01 to 1.11); the worst instance takes 1.82 times as long (an unequal cluster).

| makespan | 100 Mbit/s | 1 Gbit/s |
| --- | ---: | ---: |
| 8 workers of 2 threads | 0.87 (0.81 to 0.94) | 0.93 (0.87 to 0.99) |
| 32 workers of 4 threads | 0.89 (0.80 to 0.98) | 0.94 (0.89 to 1.01) |
| 4 workers of 16 threads | 0.68 (0.55 to 0.84) | 0.92 (0.86 to 0.98) |
| 9 workers of three speeds | 0.92 (0.81 to 1.04) | 0.94 (0.83 to 1.06) |

\`policies: dask\` decides as Dask's release 2026.8.0 does. \`family\` reads each graph as a whole before the first task starts, which
the simulator counts as no time.
`;
