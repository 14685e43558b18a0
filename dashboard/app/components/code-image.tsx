import { useMemo } from 'react';
import { encode, pathOf, QUIET_ZONE } from '../../../common/qr/matrix.ts';
import type { Code } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { encodedBy } from '../data/code-names.ts';
import styles from './code-image.module.css';

interface CodeImageProps {
  /** What the code encodes: its scan URL, or the payload of a static code. */
  readonly text: string;
  /** What a reader who can't see it should know: the code's name. Empty beside a text that says the same. */
  readonly label: string;
  /** `#rgb` or `#rrggbb`; black and white if empty or absent. */
  readonly foreground?: string | undefined;
  readonly background?: string | undefined;
  /** Width and height in px. Absent: as wide as there is room. */
  readonly size?: number | undefined;
}

/** The image of a stored code. */
export function StoredCodeImage({ code, ...rest }: { readonly code: Code } & Pick<CodeImageProps, 'label' | 'size'>) {
  const { foregroundColor, backgroundColor } = code.design ?? {};
  return <CodeImage text={encodedBy(code)} foreground={foregroundColor} background={backgroundColor} {...rest} />;
}

/** The image of a code, drawn as the core draws it: the same modules in the same colours. */
export function CodeImage({ text, label, foreground, background, size }: CodeImageProps) {
  const { path, across } = useMemo(() => {
    const matrix = encode(text);
    return { path: pathOf(matrix), across: matrix.modules + 2 * QUIET_ZONE };
  }, [text]);
  return (
    <svg
      role="img"
      aria-hidden={label === ''}
      width={size}
      height={size}
      viewBox={`0 0 ${across} ${across}`}
      shapeRendering="crispEdges"
      className={styles.image}
    >
      <title>{label}</title>
      <path fill={background || '#ffffff'} d={`M0 0h${across}v${across}H0z`} />
      <path fill={foreground || '#000000'} d={path} />
    </svg>
  );
}
