import { callUnaryMethod, useTransport } from '@connectrpc/connect-query';
import { Download, ExternalLink } from 'lucide-react';
import { useMemo, useState } from 'react';
import { encode } from '../../../../common/qr/matrix.ts';
import { type Code, CodeType } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { ImageFormat, ImagesService } from '../../../../proto/gen/signpost/images/v1/images_pb.ts';
import { Button, buttonLink } from '../../components/button.tsx';
import { downloadFile } from '../../components/charts/csv.ts';
import { StoredCodeImage } from '../../components/code-image.tsx';
import { Field } from '../../components/field.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { Select } from '../../components/select.tsx';
import { encodedBy, nameOfCode } from '../../data/code-names.ts';
import { reasonOf } from '../../data/error-reason.ts';
import { useErrorText } from '../../data/error-text.ts';
import { useFormat } from '../../data/format.ts';
import { showToast } from '../../data/toasts.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './image-panel.module.css';
import { codePdf, PRINT_QUIET_ZONE } from './pdf.ts';

const SIZES = ['512', '1024', '2048', '4096'] as const;
const FORMATS = ['png', 'svg', 'pdf'] as const;

/** Widths of a printed code, in mm: from a stamp to a hoarding. */
const [MIN_MM, MAX_MM] = [10, 2_000];

/** Modules below this width, in mm, are hard for phones to resolve. */
const FINE_MM = 0.4;

/** The code as it is printed, and files of it. */
export function ImagePanel({ code }: { readonly code: Code }) {
  const { code: texts } = useMessages();
  const { image } = texts;
  const [format, setFormat] = useState<(typeof FORMATS)[number]>('png');
  const [size, setSize] = useState<(typeof SIZES)[number]>('1024');
  const [width, setWidth] = useState('40');
  const { number } = useFormat();
  const { download, isPending } = useDownload(code);
  const matrix = useMemo(() => encode(encodedBy(code)), [code]);
  const mm = Number(width.replace(',', '.'));
  const module = mm / (matrix.modules + 2 * PRINT_QUIET_ZONE);
  const isWidth = mm >= MIN_MM && mm <= MAX_MM;
  return (
    <Section title={image.title}>
      <Panel>
        <div className={styles.image}>
          <StoredCodeImage code={code} label={nameOfCode(code)} />
        </div>
        <form
          className={styles.form}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (format !== 'pdf') void download(format === 'png' ? ImageFormat.PNG : ImageFormat.SVG, Number(size));
            else if (isWidth) downloadPdf(code, mm);
          }}
        >
          <Select
            label={image.format}
            options={FORMATS.map((id) => ({ id, label: image.formats[id] }))}
            value={format}
            onChange={setFormat}
          />
          {format === 'png' && (
            <Select
              label={image.size}
              options={SIZES.map((id) => ({ id, label: image.pixels(number(Number(id))) }))}
              value={size}
              onChange={setSize}
            />
          )}
          {format === 'svg' && <p className={styles.help}>{image.svgHelp}</p>}
          {format === 'pdf' && (
            <Field
              label={image.width}
              value={width}
              onChange={setWidth}
              inputMode="numeric"
              error={isWidth ? undefined : image.widthRange(number(MIN_MM), number(MAX_MM))}
              description={
                isWidth
                  ? `${image.widthHelp(number(Math.round(module * 100) / 100))}${module < FINE_MM ? ` ${image.tooFine}` : ''}`
                  : undefined
              }
            />
          )}
          <Button type="submit" icon={Download} look="primary" isPending={isPending}>
            {image.download}
          </Button>
          {code.type !== CodeType.STATIC && (
            <div>
              <a href={code.scanUrl} target="_blank" rel="noreferrer" className={buttonLink.plain}>
                <ExternalLink aria-hidden size={16} />
                {image.test}
              </a>
              <p className={styles.help}>{image.testHelp}</p>
            </div>
          )}
        </form>
      </Panel>
    </Section>
  );
}

/** Downloads the image that the core renders, which is the one that the API and the CLI give. */
function useDownload(code: Code) {
  const transport = useTransport();
  const errorText = useErrorText();
  const { code: texts } = useMessages();
  const [isPending, setPending] = useState(false);
  const download = async (format: ImageFormat, size: number) => {
    setPending(true);
    try {
      const input = { id: code.id, format, size };
      const image = await callUnaryMethod(transport, ImagesService.method.renderImage, input);
      downloadFile(image.fileName, image.contentType, new Uint8Array(image.content));
    } catch (error) {
      const text = reasonOf(error) === 'FEATURE_NOT_IN_PLAN' ? texts.image.notInPlan : errorText(error);
      showToast(text, { kind: 'failed' });
    } finally {
      setPending(false);
    }
  };
  return { download, isPending };
}

function downloadPdf(code: Code, width: number): void {
  const pdf = codePdf(encode(encodedBy(code)), {
    width,
    title: nameOfCode(code),
    foreground: code.design?.foregroundColor || '#000000',
    background: code.design?.backgroundColor || '#ffffff',
  });
  downloadFile(`${code.shortCode || code.id}.pdf`, 'application/pdf', pdf);
}
