/** Numbers that are made and sorted in one piece of work. */
const NUMBERS = 2048;
/** Pieces, most of them compiled by the engine. Together they take some ten milliseconds. */
const PIECES = 60;

let measured: number | undefined;

/**
 * The number of times per second that a thread of this process does a small fixed piece of work: workers compare their
 * machines by it.
 * The fastest of many pieces counts, so that other programs on the machine hardly matter. Measured once, which takes some
 * ten milliseconds of CPU.
 */
export function threadSpeed(): number {
  measured ??= measure();
  return measured;
}

function measure(): number {
  const numbers = new Float64Array(NUMBERS);
  let bestMs = Infinity;
  for (let piece = 0; piece < PIECES; piece++) {
    const begunMs = performance.now();
    work(numbers);
    bestMs = Math.min(bestMs, performance.now() - begunMs);
  }
  return Math.round(1000 / Math.max(bestMs, 0.001));
}

/** Integers, floating-point numbers, branches and memory, as tasks use them. */
function work(numbers: Float64Array): void {
  let state = 1;
  for (let place = 0; place < NUMBERS; place++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    numbers[place] = Math.sqrt(state);
  }
  numbers.sort();
}
