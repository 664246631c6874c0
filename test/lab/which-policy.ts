/** The first part of `docs/policies-compared.md`: how the defaults do on graphs of other people, and what to take. */
export const WHAT_TO_EXPECT = `## What to expect

The defaults beside the rules of Dask's release 2026.8.0 (\`policies: dask\`), on 26 graphs of Estee and WfInstances with up to 200
tasks; the constants of the defaults were tried on 19 of them. Geometric means with 95 % intervals over the graphs, three seeds
(\`lab corpus --full --max-tasks 200\`). Over all 24 settings: makespan 0.86 (0.82 to 0.90), bytes moved 0.66 (0.52 to 0.85), peak of
a worker 1.05 (1.01 to 1.09); the worst instance takes 1.43 times as long.

| makespan | 100 Mbit/s | 1 Gbit/s | 10 Gbit/s | 1 Gbit/s, little memory | 1 Gbit/s, durations known |
| --- | ---: | ---: | ---: | ---: | ---: |
| 8 workers of 2 threads | 0.87 (0.80 to 0.93) | 0.94 (0.89 to 1.00) | 0.98 (0.94 to 1.01) | 0.94 (0.88 to 0.99) | 0.97 (0.92 to 1.02) |
| 32 workers of 4 threads | 0.89 (0.81 to 0.98) | 0.95 (0.89 to 1.01) | 0.99 (0.98 to 1.00) | 1.01 (0.96 to 1.06) | 0.94 (0.87 to 1.01) |
| 4 workers of 16 threads | 0.70 (0.57 to 0.86) | 0.92 (0.87 to 0.98) | 0.99 (0.97 to 1.01) | 0.95 (0.89 to 1.02) | 0.94 (0.89 to 0.99) |
| 9 workers of three speeds | 0.66 (0.56 to 0.77) | 0.69 (0.59 to 0.81) | 0.70 (0.59 to 0.81) | 0.70 (0.60 to 0.83) | 0.62 (0.52 to 0.73) |

The workers of the last line tell how fast they are, as ours do. Those of Dask do not: 0.87 to 0.95 with them. Known
durations that are wrong by a third change that by at most 0.01. Little memory is 0.6 of the peak under Dask's rules, and enough
for each single task. All 104 instances end with the defaults; with Dask's rules seven fail: four workers in a row died of what one
task needed. Workers spill or pause on 103 of them, and on 95 with Dask's. The
largest task has to be somewhere with its inputs: because of that alone no schedule has a mean peak below 0.92 with little memory.

### Which to take

| work | take | measured |
| --- | --- | --- |
| trees whose leaves together fit into memory (\`tree\`) | \`queuing/co-assign\` | 0.85 of the makespan; it holds nothing back |
| shuffles (\`shuffle\`) | \`workerSelection/balanced\` | 0.88, and 1.44 on \`chains\`: it leaves inputs for threads that are free |
| many short maps into few reducers (\`mapreduce\`) | \`stealing/dask\` | 0.93, and 1.38 on \`chains\`: it moves tasks on the guess that they are long |
| results that nearly fill the workers' memory | \`activeMemoryManager\` with \`balance-memory\` | 0.93 instead of 0.97 at 8 workers with little memory, and more is moved |
| functions that ran before | [\`scheduler.knowledge\`](persistence.md#what-was-measured) | until a function has run, a task is taken for 0.5 s |
| all else | the defaults | the best of eight choices for each graph, chosen by one run and judged by another: 0.995 |
`;
