import { inspect } from 'node:util';
import type { Clock } from '../api/clock.ts';
import type { Logger } from '../api/plugin.ts';
import type { LogLine } from '../messages/protocol.ts';
import { nextInRing } from '../util/collections/ring.ts';

/** Lines that are kept. */
const LINES_MAX = 1000;
/** Of the fields of a line, as text. */
const FIELDS_LENGTH_MAX = 4000;

/** A logger that also keeps the newest lines, from `info` up, for those who ask from afar. */
export class LogBook implements Logger {
  private readonly ring: LogLine[] = [];
  private next = 0;

  constructor(
    private readonly log: Logger,
    private readonly clock: Clock,
  ) {}

  /** The newest lines, oldest first. */
  lines(countMax = LINES_MAX): readonly LogLine[] {
    const ordered = [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)];
    return countMax >= ordered.length ? ordered : ordered.slice(ordered.length - countMax);
  }

  debug(fields: object, message?: string): void {
    this.log.debug(fields, message);
  }

  info(fields: object, message?: string): void {
    this.keep('info', fields, message);
    this.log.info(fields, message);
  }

  warn(fields: object, message?: string): void {
    this.keep('warn', fields, message);
    this.log.warn(fields, message);
  }

  error(fields: object, message?: string): void {
    this.keep('error', fields, message);
    this.log.error(fields, message);
  }

  private keep(level: LogLine['level'], fields: object, message = ''): void {
    const line = {
      atMs: this.clock.nowMs(),
      level,
      message: wellFormed(message),
      fields: textOf(fields),
    };
    if (this.ring.length < LINES_MAX) {
      this.ring.push(line);
      return;
    }
    this.ring[this.next] = line;
    this.next = nextInRing(this.next, LINES_MAX);
  }
}

/** As text at once, so that nothing is kept alive and all of it can travel. */
function textOf(fields: object): string {
  let text: string;
  try {
    text = inspect(fields, { depth: 4, breakLength: Infinity });
  } catch (thrown) {
    text = `fields that cannot be shown: ${String(thrown)}`;
  }
  return wellFormed(text.slice(0, FIELDS_LENGTH_MAX));
}

/** Half of a surrogate pair has no form in UTF-8. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}
