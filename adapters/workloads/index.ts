/** Graphs by which schedulers are compared, in any size or as recorded from real computations, with their costs. */
export { crossv, mapreduce, vectorizer, wordbag } from './synthetic.ts';
export { chains, map, merge, mergeSlow, overlap, shuffle, tree } from './synthetic.ts';
export { COST_MAX, type CostedTask, graphWorkload } from './workload.ts';
export { workload, WORKLOADS } from './literature.ts';
export { type SimulatedWorkload, invalidWorkload, SHAPES, shaped, withCost } from './shapes.ts';
export { RECORDED, recorded, type RecordedName } from './recorded.ts';
export type { GraphCounts, Workload } from './workload.ts';
export { wfcommonsWorkload } from './wfcommons.ts';
export { jsonWorkloads } from './json.ts';
export { dotWorkload } from './dot.ts';
