import { worldMap } from 'virtual:world-map';
import type { Bar } from '../../components/charts/bars.tsx';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './analytics.module.css';

const STEPS = 5;

/** Scans by country in five steps; the table beside it has the numbers. */
export function WorldMap({ countries }: { readonly countries: readonly Bar[] }) {
  const { code: texts } = useMessages();
  const format = useFormat();
  const scans = new Map(countries.map((bar) => [bar.value, bar]));
  const limits = limitsOf(countries.filter(({ value }) => /^[A-Z]{2}$/.test(value)).map((bar) => bar.scans));
  const step = (count: number) => (count === 0 ? 0 : limits.findIndex((limit) => count <= limit) + 1);
  return (
    <div className={styles.map}>
      <svg viewBox={`0 0 ${worldMap.width} ${worldMap.height}`} role="img" aria-label={texts.scans.map}>
        {worldMap.countries.map(({ code, path }, index) => {
          const bar = scans.get(code);
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: disputed areas have no code.
            <path key={index} d={path} className={styles[`step${step(bar?.scans ?? 0)}`]}>
              {bar && <title>{`${bar.label}: ${format.number(bar.scans)}`}</title>}
            </path>
          );
        })}
      </svg>
      <ul className={styles.scale} aria-hidden="true">
        {limits.map((limit, index) => (
          <li key={limit}>
            <svg viewBox="0 0 12 12" aria-hidden="true">
              <path d="M0 0h12v12H0z" className={styles[`step${index + 1}`]} />
            </svg>
            {rangeText(format.number((limits[index - 1] ?? 0) + 1), format.number(limit))}
          </li>
        ))}
      </ul>
    </div>
  );
}

/**
 * The upper limits of the steps, each about as many times the one before: scans of countries differ by orders of
 * magnitude, so that equal steps would show one dark country and a pale world.
 */
function limitsOf(counts: readonly number[]): number[] {
  const most = Math.max(0, ...counts);
  const limits = Array.from({ length: STEPS }, (_, index) => Math.ceil(most ** ((index + 1) / STEPS)));
  return most === 0 ? [] : [...new Set(limits)];
}

function rangeText(from: string, to: string): string {
  return from === to ? from : `${from}–${to}`;
}
