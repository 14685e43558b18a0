import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';

/** What axe finds wrong with a page, each as `rule: element`. `limit` limits it to some rules or a part of the page. */
export async function axeFindings(page: Page, limit = (axe: AxeBuilder) => axe): Promise<string[]> {
  // In the page itself rather than partly in another one, and without a description of everything that is in order.
  const axe = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ['violations'] });
  const { violations } = await limit(axe).analyze();
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}
