import type { Logger } from '../../core/api/index.ts';

/** Warnings and errors, to be looked at. */
export class MemoryLog implements Logger {
  readonly lines: string[] = [];
  debug = (): void => undefined;
  info = (): void => undefined;
  warn = (_: object, message = ''): void => void this.lines.push(message);
  error = (_: object, message = ''): void => void this.lines.push(message);

  get text(): string {
    return this.lines.join('\n');
  }
}
