import { Button } from '../../components/button.tsx';
import { downloadCsv } from '../../components/charts/csv.ts';
import { nameOfCode } from '../../data/code-names.ts';
import { useFormat } from '../../data/format.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './bulk.module.css';
import type { BulkResult } from './bulk-result.ts';

const MAX_LISTED = 5;

/** How many codes were changed, how many may still be, which could not be, and why. */
export function BulkReport({ result }: { readonly result: BulkResult }) {
  const { bulk } = useMessages().codes;
  const format = useFormat();
  const { failures, changed, pending, withoutTarget } = result;
  return (
    <div className={styles.failures}>
      {changed > 0 && <p>{bulk.done(changed, format.number(changed))}</p>}
      {pending > 0 && <p>{bulk.pending(pending, format.number(pending))}</p>}
      {withoutTarget > 0 && <p>{bulk.withoutTarget(withoutTarget, format.number(withoutTarget))}</p>}
      {failures.length > 0 && <FailureList failures={failures} />}
    </div>
  );
}

function FailureList({ failures }: { readonly failures: BulkResult['failures'] }) {
  const { codes, rowSentence } = useMessages();
  const { bulk } = codes;
  const format = useFormat();
  return (
    <>
      <p>{bulk.failed(failures.length, format.number(failures.length))}</p>
      <ul>
        {failures.slice(0, MAX_LISTED).map(({ code, message }) => (
          <li key={code.id}>
            <strong>{nameOfCode(code)}</strong> {rowSentence(message) || bulk.notFound}
          </li>
        ))}
      </ul>
      {failures.length > MAX_LISTED && <p>{bulk.moreFailed(format.number(failures.length - MAX_LISTED))}</p>}
      <div>
        <Button
          onPress={() =>
            downloadCsv('failures.csv', [
              ['id', 'short_code', 'name', 'reason'],
              ...failures.map(({ code, message }) => [
                code.id,
                code.shortCode,
                code.name ?? '',
                rowSentence(message) || bulk.notFound,
              ]),
            ])
          }
        >
          {bulk.failures}
        </Button>
      </div>
    </>
  );
}
