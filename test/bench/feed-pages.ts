/**
 * Open pages of the dashboard without a browser, in a process of their own: what they cost themselves is no part of the
 * scheduler's price. Arguments: address of the dashboard, number of pages, `status` or `tasks`. Prints a JSON line when
 * all are open, and another one with the bytes received so far for each line of its input; ends with its input.
 */
import { FeedPage } from './feed-page.ts';
import { print } from './side-by-side.ts';

const [at = '', count = '1', page = 'status'] = process.argv.slice(2);
const pages = Array.from({ length: Number(count) }, () => new FeedPage(at, page === 'tasks'));
await Promise.all(pages.map(({ opened }) => opened));
print({ pages: pages.length });
process.stdin.on('data', () => print({ bytes: pages.reduce((sum, { bytes }) => sum + bytes, 0) }));
process.stdin.on('end', () => process.exit(0));
