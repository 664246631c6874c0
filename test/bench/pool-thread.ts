/** What poolifier's threads load. */
import { ThreadWorker } from 'poolifier';
import { addOne } from './add-one.ts';

new ThreadWorker<number, number>((value) => addOne(value ?? 0));
