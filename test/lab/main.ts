/** `npm run lab:page`: writes `docs/policies-compared.md`. */
import { writeFileSync } from 'node:fs';
import { policiesPage } from './policies-page.ts';

const page = await policiesPage((name) => process.stderr.write(`${name}\n`));
writeFileSync('docs/policies-compared.md', page);
