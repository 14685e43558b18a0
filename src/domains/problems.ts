/**
 * What a check of a domain finds missing, as sentences. The dashboard shows them in the reader's language: see
 * `dashboard/app/messages/de/core-sentences.ts`.
 */
export const DOMAIN_PROBLEMS = {
  noTxt: (name: string) => `There is no TXT record at ${name} yet.`,
  otherTxt: (name: string, value: string) => `The TXT record at ${name} does not contain ${value}.`,
  otherAccount: 'Another account has verified this hostname and must remove it first.',
  noAddress: (hostname: string, remedy: string) => `${hostname} has no address yet. ${remedy}`,
  foreignAddresses: (hostname: string, addresses: readonly string[], remedy: string) =>
    `${hostname} resolves to ${addresses.join(', ')}. ${remedy}`,
  /** `addresses`: those of the platform, for hostnames that can't be a CNAME. */
  remedy: (hostname: string, platform: string, addresses: readonly string[]) =>
    `Make ${hostname} a CNAME for ${platform}${
      addresses.length > 0 ? `, or give it only the addresses ${addresses.join(', ')}` : ''
    }.`,
} as const;
