import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { isLoopback } from '../../core/util/hosts.ts';

/** Begins the name of the cookie that keeps the token of a browser. Browsers do not tell ports apart, so the port follows. */
const COOKIE = 'yardmaster-token-';

/** The right that a request needs. */
export type Need =
  /** Says nothing about the cluster. */
  | 'nothing'
  /** Figures without names of tasks. */
  | 'figures'
  /** Everything that is only read. */
  | 'read'
  /** A change of the cluster. */
  | 'change';

export interface Refusal {
  readonly status: 401 | 403;
  readonly text: string;
}

/** The rules about who may reach the dashboard. */
export interface AccessOptions {
  readonly host: string;
  readonly hosts: readonly string[];
  readonly token?: string;
  /** Readers show a certificate. */
  readonly hasCertificates: boolean;
}

/**
 * Decides about requests. Every request is checked by its `Host` and `Origin`, because a page of a foreign site can
 * make a browser send requests to this machine under a name of its own (DNS rebinding).
 */
export class Access {
  /** Has to come with each change; only pages of the dashboard that were opened with the token have it. */
  private readonly changeToken = randomBytes(24).toString('base64url');
  /**
   * The token that each request has to carry if an option names one. Otherwise each page from which something is to be
   * changed: on loopback every user of the machine may look.
   */
  readonly token: string;
  private readonly names: ReadonlySet<string>;
  private readonly isOpen: boolean;

  constructor(private readonly options: AccessOptions) {
    const { host, hosts, token, hasCertificates } = options;
    this.names = new Set(['localhost', hostname(), host, ...hosts].map((one) => one.toLowerCase()));
    this.isOpen = isLoopback(host) || token !== undefined || hasCertificates;
    this.token = token ?? randomBytes(24).toString('base64url');
  }

  /** Undefined when the request may be answered. */
  refusal(
    need: Need,
    headers: IncomingHttpHeaders,
    query: { token?: unknown },
  ): Refusal | undefined {
    if (need === 'nothing') return undefined;
    const { host = '', origin } = headers;
    if (!this.isKnownHost(host)) {
      return forbidden(
        `this dashboard is not served under the name "${host}"; add it to the option hosts of the plugin dashboard`,
      );
    }
    if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) {
      return forbidden('requests from pages of other sites are refused');
    }
    if (this.options.token !== undefined && !this.hasToken(headers, query)) {
      return { status: 401, text: 'open the address with ?token=…, or send Authorization: Bearer' };
    }
    if (need === 'figures') return undefined;
    if (!this.isOpen) {
      return forbidden(
        `the dashboard is served on loopback only, unless it has a token: give the plugin dashboard the option token. Figures are at /metrics and /json/counts.json`,
      );
    }
    if (need === 'change' && !matches(headers['x-yardmaster-change'], this.changeToken)) {
      return forbidden(
        'to change something, open the address with ?token=… that the scheduler logs at its start (--log-level info), or give the plugin dashboard a token',
      );
    }
    return undefined;
  }

  /** The token that a page sends along with changes; empty for a reader who may only look. */
  changeTokenFor(headers: IncomingHttpHeaders, query: { token?: unknown }): string {
    const mayChange = this.options.hasCertificates || this.hasToken(headers, query);
    return mayChange ? this.changeToken : '';
  }

  /** The cookie for a browser that came with the token in its address. */
  cookieFor({ host }: IncomingHttpHeaders, query: { token?: unknown }): string | undefined {
    const { token } = this;
    if (!matches(query.token, token)) return undefined;
    return `${cookieName(host)}=${encodeURIComponent(token)}; Path=/; HttpOnly; SameSite=Strict`;
  }

  private hasToken(headers: IncomingHttpHeaders, query: { token?: unknown }): boolean {
    const { token } = this;
    const { authorization = '', cookie = '', host } = headers;
    const name = `${cookieName(host)}=`;
    const kept = cookie
      .split(/;\s*/)
      .find((pair) => pair.startsWith(name))
      ?.slice(name.length);
    return (
      matches(query.token, token) ||
      matches(authorization.replace(/^Bearer /, ''), token) ||
      matches(kept, encodeURIComponent(token))
    );
  }

  /** An address cannot be rebound; a name can, so that only known ones pass. */
  private isKnownHost(header: string): boolean {
    const name = header
      .replace(/:\d+$/, '')
      .replace(/^\[|\]$/g, '')
      .toLowerCase();
    return isIP(name) !== 0 || this.names.has(name);
  }
}

function cookieName(host = ''): string {
  return `${COOKIE}${/:(\d+)$/.exec(host)?.[1] ?? 'none'}`;
}

function forbidden(text: string): Refusal {
  return { status: 403, text };
}

function matches(given: unknown, wanted: string): boolean {
  if (typeof given !== 'string') return false;
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
