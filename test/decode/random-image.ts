import { Resvg } from '@resvg/resvg-js';
import * as fc from 'fast-check';
import { QUIET_ZONE } from '../../common/qr/matrix.ts';
import { WifiSecurity } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { designWarning } from '../../src/codes/fields/design-warnings.ts';
import { wifiPayload } from '../../src/codes/fields/wifi.ts';
import { drawSync, type Format, sizeOf } from '../../src/images/drawing.ts';
import { matrixOf } from '../../src/images/matrix.ts';

/** An image as the API serves it, with what it was drawn from. */
export interface RandomImage {
  readonly kind: keyof typeof KINDS;
  readonly text: string;
  readonly format: Format;
  readonly foreground: string;
  readonly background: string;
  /** What the API says about the colours; undefined if they are readable. */
  readonly warning: string | undefined;
  /** Modules per side, without the quiet zone. */
  readonly modules: number;
  /** Width of a module in the PNG, in pixels. */
  readonly modulePixels: number;
  /** The PNG; an SVG is rasterised in the size that was requested, or that a PNG of it would have. */
  readonly png: Buffer;
}

const MAX_BYTES = 2_331;
const LETTERS = ['aéßÄöüñçø', 'ąłżčř', 'Приветмир', '日本語の店', '😀🍕', 'مرحبا', 'abc xyz 123'];

const bounded = (text: string) => Buffer.byteLength(text) <= MAX_BYTES;
const unicode = fc
  .constantFrom(...LETTERS)
  .chain((letters) => fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 60 }));

/** Payloads by kind, each as likely as the others. */
const KINDS = {
  'scan URL': fc
    .tuple(fc.domain(), fc.stringMatching(/^[2-9A-HJ-NP-Za-km-z]{7}$/))
    .map(([host, code]) => `https://${host}/r/${code}`),
  URL: fc.webUrl({ withQueryParameters: true }),
  ASCII: fc.oneof(
    fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 200 }),
    fc.stringMatching(/^[0-9]{1,80}$/),
    fc.stringMatching(/^[0-9A-Z $%*+./:-]{1,80}$/),
  ),
  Unicode: fc
    .tuple(unicode, fc.string({ unit: 'grapheme-ascii', maxLength: 60 }))
    .map(([special, plain]) => special + plain),
  'Wi-Fi': fc
    .record({
      ssid: fc
        .oneof(fc.constantFrom('Gäste', 'Café Zürich', 'Lobby'), unicode)
        .filter((text) => text.trim() !== '' && Buffer.byteLength(text) <= 32),
      password: fc.oneof(
        fc.stringMatching(/^[!-~]{8,63}$/),
        fc.constantFrom('grüße-süß-99', 'пароль123', 'パスワード12345678'),
      ),
    })
    .map((wifi) => wifiPayload({ ...wifi, security: WifiSecurity.WPA, hidden: false } as never)),
  long: fc
    .tuple(fc.constantFrom('x', 'ü', '語', 'abc DEF 012 '), fc.integer({ min: 300, max: MAX_BYTES }))
    .map(([unit, bytes]) => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))),
} satisfies Record<string, fc.Arbitrary<string>>;

const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`);
const design = fc.record({ foreground: colour, background: colour });

/** Random images of codes. `warned`: in colours that the API warns about, else in those that it does not. */
export function randomImage(warned: boolean): fc.Arbitrary<RandomImage> {
  return fc
    .record({
      kind: fc.constantFrom(...(Object.keys(KINDS) as (keyof typeof KINDS)[])),
      design: design.filter(
        ({ foreground, background }) => (designWarning(foreground, background) !== undefined) === warned,
      ),
      format: fc.constantFrom<Format>('png', 'svg'),
      // Each doubling of the size is as likely as any other.
      doublings: fc.double({ min: 0, max: 4, noNaN: true }),
    })
    .chain(({ kind, ...drawn }) => KINDS[kind].filter(bounded).map((text) => imageOf(kind, text, drawn)));
}

function imageOf(
  kind: keyof typeof KINDS,
  text: string,
  {
    design,
    format,
    doublings,
  }: { design: { foreground: string; background: string }; format: Format; doublings: number },
): RandomImage {
  const { modules } = matrixOf(text);
  const across = modules + 2 * QUIET_ZONE;
  const size = sizeOf(Math.round(128 * 2 ** doublings));
  const drawn = drawSync({ text, format, size, ...design, title: 'x' });
  const width = format === 'png' ? drawn.readUInt32BE(16) : Math.max(size, across * 3);
  const png =
    format === 'png' ? drawn : new Resvg(drawn.toString(), { fitTo: { mode: 'width', value: width } }).render().asPng();
  return {
    kind,
    text,
    format,
    ...design,
    warning: designWarning(design.foreground, design.background),
    modules,
    modulePixels: width / across,
    png,
  };
}
