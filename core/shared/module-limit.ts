/** Where the modules may be that a worker loads because a client names them. */
export interface ModuleLimit {
  /** Real paths of the folders and files. */
  readonly folders: readonly string[];
  /** The project in which modules are looked for that clients name relative to theirs. Real path. */
  readonly codeRoot: string;
  /**
   * @param module - a URL, or an absolute path
   * @throws YardmasterError `ERR_MODULE_REFUSED`
   */
  check(module: string): void;
}
