import { LOOPBACK } from '../../local/free-port.ts';

/** A sample of Prometheus's text format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric with its samples; those of a histogram end in `_bucket`, `_sum` and `_count`. */
export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly unit: string;
  readonly samples: readonly Sample[];
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** What a process serves as `/metrics` on its `METRICS_PORT`. */
export async function scrape(port: number): Promise<Family[]> {
  const response = await fetch(`http://${LOOPBACK}:${port}/metrics`);
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}`);
  return parseMetrics(await response.text());
}

/** Parses Prometheus's text format; throws on anything else. */
function parseMetrics(text: string): Family[] {
  const blocks = text.split(/^(?=# HELP )/m).filter(Boolean);
  return blocks.map((block) => {
    const lines = block.split('\n').filter(Boolean);
    const about = (keyword: string) =>
      lines.find((line) => line.startsWith(`# ${keyword} `))?.replace(/^# \w+ \S+ /, '') ?? '';
    const name = lines[0]?.split(' ')[2] ?? '';
    const samples = lines.filter((line) => !line.startsWith('# ')).map(parseSample);
    return { name, type: about('TYPE'), help: about('HELP'), unit: about('UNIT'), samples };
  });
}

function parseSample(line: string): Sample {
  const [, name, labels = '', value] = SAMPLE.exec(line) ?? [];
  if (name === undefined) throw new Error(`not a sample: ${line}`);
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', text = '']) => [key, text]);
  return { name, labels: Object.fromEntries(pairs), value: Number(value) };
}

/** The sum of the samples of this name whose labels include `labels`; 0 without any. */
export function sumOf(
  families: readonly Family[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  return families
    .flatMap(({ samples }) => samples)
    .filter(
      (sample) => sample.name === name && Object.entries(labels).every(([key, text]) => sample.labels[key] === text),
    )
    .reduce((sum, { value }) => sum + value, 0);
}
