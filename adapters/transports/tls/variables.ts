/** Variables of the environment that name the files of certificates. */
export const CERTIFICATE_VARIABLES = {
  ca: 'YARDMASTER_TLS_CA_FILE',
  cert: 'YARDMASTER_TLS_CERT',
  key: 'YARDMASTER_TLS_KEY',
} as const;
