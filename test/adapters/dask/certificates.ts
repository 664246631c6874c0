import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Names of files with certificates for tests. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Files of an authority. */
export interface Authority {
  readonly ca: string;
  readonly caKey: string;
}

/** Certificates can be made here. */
export const hasOpenssl = spawnSync('openssl', ['version'], { stdio: 'ignore' }).status === 0;

/** Makes an authority and a certificate that it signed. @param folder - must exist */
export function makeCertificates(folder: string, name: string): Certificates {
  const authority = makeAuthority(folder, name);
  return makeSigned(folder, name, authority);
}

/** Makes an authority. */
export function makeAuthority(folder: string, name: string): Authority {
  const ca = join(folder, `${name}-ca.pem`);
  const caKey = join(folder, `${name}-ca-key.pem`);
  openssl(
    'req',
    '-x509',
    ...EC,
    '-keyout',
    caKey,
    '-out',
    ca,
    '-days',
    '2',
    '-subj',
    `/CN=${name} ca`,
  );
  return { ca, caKey };
}

/** Makes a certificate. @param units - organisational units of its subject */
export function makeSigned(
  folder: string,
  name: string,
  { ca, caKey }: Authority,
  units: readonly string[] = [],
): Certificates {
  const cert = join(folder, `${name}.pem`);
  const key = join(folder, `${name}-key.pem`);
  const request = join(folder, `${name}.csr`);
  const subject = [`/CN=${name}`, ...units.map((unit) => `/OU=${unit}`)].join('');
  openssl('req', ...EC, '-keyout', key, '-out', request, '-subj', subject);
  const signer = ['-CA', ca, '-CAkey', caKey, '-CAcreateserial'];
  openssl('x509', '-req', '-in', request, ...signer, '-out', cert, '-days', '2');
  return { ca, cert, key };
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

function openssl(...args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' });
}
