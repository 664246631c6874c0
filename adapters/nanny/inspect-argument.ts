/** Where debuggers look first. */
export const INSPECT_PORT = 9229;

/**
 * The argument by which Node lets a debugger attach, on this machine only, because a debugger may run anything.
 * @param port - 0: any; true: {@link INSPECT_PORT}
 */
export function inspectArgument(port: number | true): string {
  return `--inspect=127.0.0.1:${port === true ? INSPECT_PORT : port}`;
}
