import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Names of files with certificates for tests. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Certificates can be made here. */
export const hasOpenssl = spawnSync('openssl', ['version'], { stdio: 'ignore' }).status === 0;

/** Makes an authority and a certificate that it signed. @param folder - must exist */
export function makeCertificates(folder: string, name: string): Certificates {
  const ca = join(folder, `${name}-ca.pem`);
  const caKey = join(folder, `${name}-ca-key.pem`);
  const cert = join(folder, `${name}.pem`);
  const key = join(folder, `${name}-key.pem`);
  const request = join(folder, `${name}.csr`);
  const run = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { stdio: 'ignore' });
  };
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  run('req', '-x509', ...ec, '-keyout', caKey, '-out', ca, '-days', '2', '-subj', `/CN=${name} ca`);
  run('req', ...ec, '-keyout', key, '-out', request, '-subj', `/CN=${name}`);
  run(
    'x509',
    '-req',
    '-in',
    request,
    '-CA',
    ca,
    '-CAkey',
    caKey,
    '-CAcreateserial',
    '-out',
    cert,
    '-days',
    '2',
  );
  return { ca, cert, key };
}
