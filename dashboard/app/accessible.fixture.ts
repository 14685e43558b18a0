import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

const WIDTHS = [1440, 390] as const;
const THEMES = ['light', 'dark'] as const;

/** Expects that a page has no findings of axe in either theme, wide and narrow, and nothing that scrolls sideways. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    // Charts are drawn anew after the screen has changed.
    await expect.poll(overflow, { message: `px beyond the screen at ${width} px` }).toBeLessThanOrEqual(0);
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      // React Aria announces there that a button is at work, and refers to the button even when it is gone.
      const axe = new AxeBuilder({ page }).exclude('[data-live-announcer]');
      const { violations } = await axe.analyze();
      const findings = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
      expect(findings, `axe at ${width} px, ${colorScheme}`).toEqual([]);
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1440, height: 900 });
}
