/** The numbers in the names of files that belong together, ascending. @param pattern - its first group is the number */
export function numbersIn(names: readonly string[], pattern: RegExp): number[] {
  return names
    .flatMap((name) => pattern.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}
