import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

/** Debian's; `.ci/run` installs it. */
const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** Tests in a browser are skipped where there is none. */
export const hasBrowser = existsSync(CHROMIUM);

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
}

/** A page that says what it waited for just before the limit of the test. */
export async function openPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(280_000);
  return page;
}

/** What a page did that it should not: errors on its console, and requests to elsewhere. Filled as it happens. */
export function misdeedsOf(page: Page, at: string): readonly string[] {
  const found: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') found.push(message.text());
  });
  page.on('pageerror', (error) => found.push(error.message));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== at && !request.url().startsWith('data:')) {
      found.push(`it fetched ${request.url()}`);
    }
  });
  return found;
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** Breaches of the rules of accessibility within an element, with the first place of each. */
export async function violationsIn(page: Page, within = 'html'): Promise<readonly unknown[]> {
  await page.evaluate(readAxe());
  const violations = await page.evaluate<readonly Violation[]>(
    `axe.run(${JSON.stringify(within)}).then(({ violations }) => violations)`,
  );
  return violations.map(({ id, nodes }) => [id, nodes[0]?.html]);
}

/** The checker of accessibility rules, as text: a script tag would break the policy of the page. */
function readAxe(): string {
  const { source } = createRequire(import.meta.url)('axe-core') as { readonly source: string };
  return source;
}
