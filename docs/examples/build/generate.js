/** `node generate.js [COUNT]`: writes units into `src`, each of which imports up to three of those before it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import process from 'node:process';

const count = Number(process.argv[2] ?? 400);
const nameOf = (unit) => `unit${String(unit).padStart(4, '0')}`;
mkdirSync('src', { recursive: true });
for (let unit = 0; unit < count; unit++) {
  const name = nameOf(unit);
  const imports = [...new Set([unit - 1, unit - 7, unit - 40])].filter(
    (other) => other >= 0 && Math.floor(other / 10) < Math.floor(unit / 10),
  );
  const calls = imports.map(
    (other) => `${nameOf(other)}({ amount: input.amount, rate: ${other} }).total`,
  );
  const source = [
    ...imports.map((other) => `import { ${nameOf(other)} } from './${nameOf(other)}.js';`),
    `// Adds up what it imports.`,
    `export interface Input { readonly amount: number; readonly rate: number }`,
    `export interface Output { readonly total: number; readonly parts: number[] }`,
    `export function ${name}(input: Input): Output {`,
    `  const parts: number[] = [input.amount * input.rate, ${calls.join(', ')}];`,
    `  return { total: parts.reduce((sum, part) => sum + part, ${unit}), parts };`,
    `}`,
  ];
  writeFileSync(`src/${name}.ts`, `${source.join('\n')}\n`);
}
