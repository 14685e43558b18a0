const NOT_PUBLIC = 'an address that is not public';

/**
 * What a check of a domain finds missing, as sentences. The dashboard shows them in the reader's language: see
 * `dashboard/app/messages/de/core-sentences.ts`.
 */
export const DOMAIN_PROBLEMS = {
  noTxt: (name: string) => `There is no TXT record at ${name} yet.`,
  otherTxt: (name: string, value: string) => `The TXT record at ${name} does not contain ${value}.`,
  otherAccount: 'Another account has verified this hostname and must remove it first.',
  noAddress: (hostname: string, remedy: string) => `${hostname} has no address yet. ${remedy}`,
  /**
   * `addresses`: those that are public. Whether there are `others` is all that is said of them: by a CNAME, a domain's
   * owner could otherwise learn what names in the operator's network resolve to.
   */
  foreignAddresses: (hostname: string, addresses: readonly string[], others: boolean, remedy: string) => {
    const shown = [...(addresses.length > 0 ? [addresses.join(', ')] : []), ...(others ? [NOT_PUBLIC] : [])];
    return `${hostname} resolves to ${shown.join(' and ')}. ${remedy}`;
  },
  /** `addresses`: those of the platform, for hostnames that can't be a CNAME. */
  remedy: (hostname: string, platform: string, addresses: readonly string[]) =>
    `Make ${hostname} a CNAME for ${platform}${
      addresses.length > 0 ? `, or give it only the addresses ${addresses.join(', ')}` : ''
    }.`,
} as const;
