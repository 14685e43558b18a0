import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { axeFindings } from '../../test/harness/axe.ts';

const WIDTHS = [1440, 390] as const;
const THEMES = ['light', 'dark'] as const;

/** The rules whose findings may differ between the themes. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/**
 * Expects that a page has no findings of axe in either theme, wide and narrow, and nothing that scrolls sideways.
 * `isVariant`: another test checks a similar page in full; axe checks this one only wide and light.
 */
export async function expectAccessible(page: Page, { isVariant = false } = {}): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    // Charts are drawn anew after the screen has changed.
    await expect.poll(overflow, { message: `px beyond the screen at ${width} px` }).toBeLessThanOrEqual(0);
    for (const colorScheme of THEMES) {
      if (isVariant && (width !== WIDTHS[0] || colorScheme !== 'light')) continue;
      await page.emulateMedia({ colorScheme });
      // React Aria announces there that a button is at work, and refers to the button even when it is gone.
      const findings = await axeFindings(page, (axe) => {
        const all = axe.exclude('[data-live-announcer]');
        return colorScheme === 'light' ? all : all.withRules(COLOUR_RULES);
      });
      expect(findings, `axe at ${width} px, ${colorScheme}`).toEqual([]);
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1440, height: 900 });
}
