import * as work from './work.js';

export const extract = ({ path, changedMs }) => work.extract(path, changedMs);
export const { embed } = work;
