/** The demo: an inverted index over real text, with TF-IDF, as hundreds of tasks. */
export { type Corpus, findCorpus } from './documents.ts';
export { type Cut, demoGraph, type DemoGraph, stageOf } from './graph.ts';
export { singlePass, type SinglePassResult } from './single-pass.ts';
export type { Answer, Question } from './tasks.ts';
