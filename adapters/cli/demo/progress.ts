import { SingleBar } from 'cli-progress';

/** Shows how far something is: a bar on a terminal, now and then a line elsewhere. */
export interface Progress {
  update(done: number): void;
  stop(): void;
}

/** Lines that are printed when the output is not a terminal. */
const LINES = 10;

/** @param stream - where people look; results go elsewhere */
export function startProgress(total: number, stream: NodeJS.WriteStream): Progress {
  return stream.isTTY ? bar(total, stream) : lines(total, stream);
}

function bar(total: number, stream: NodeJS.WriteStream): Progress {
  const single = new SingleBar({
    format: 'tasks {bar} {value}/{total}  {duration_formatted}',
    stream,
    barsize: 40,
    hideCursor: true,
    clearOnComplete: false,
  });
  single.start(total, 0);
  return {
    update: (done) => {
      single.update(done);
    },
    stop: () => {
      single.stop();
    },
  };
}

function lines(total: number, stream: NodeJS.WritableStream): Progress {
  let printed = 0;
  return {
    update: (done) => {
      const step = Math.floor((done * LINES) / total);
      if (step <= printed) return;
      printed = step;
      stream.write(`${done} of ${total} tasks are done\n`);
    },
    stop: () => undefined,
  };
}
