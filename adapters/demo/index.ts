/** The demo: texts that nearly repeat each other, found by MinHash in hundreds of tasks. */
export { type Corpus, findCorpus, warm } from './documents.ts';
export { demoGraph, type DemoGraph, stageOf } from './graph.ts';
export { type NearDuplicates, singlePass } from './near-duplicates.ts';
