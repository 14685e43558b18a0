import { useQuery } from '@connectrpc/connect-query';
import { Link } from '@tanstack/react-router';
import { Pause, Play, RotateCcw, X } from 'lucide-react';
import { type RefObject, useMemo } from 'react';
import { AnalyticsService } from '../../../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { type Code, CodeType } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button, buttonLink, IconButton } from '../../components/button.tsx';
import { StoredCodeImage } from '../../components/code-image.tsx';
import { CodeState } from '../../components/code-state.tsx';
import { Copyable } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { LoadFailed } from '../../components/loaded.tsx';
import { Loading } from '../../components/loading.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useCodeActions } from '../../data/code-actions.ts';
import { nameOfCode } from '../../data/code-names.ts';
import { useFormat } from '../../data/format.ts';
import { useMedia } from '../../data/media.ts';
import { useMay } from '../../data/session.ts';
import { useCode } from '../../data/use-code.ts';
import { useMessages } from '../../messages/index.ts';
import { CodeTarget } from './code-row.tsx';
import styles from './codes.module.css';
import { useOpenCode } from './filters.tsx';

/** The essentials of one code beside the list, which stays usable; where there is no room, over it. */
export function CodePanel({ id, list }: { readonly id: string; readonly list: RefObject<HTMLElement | null> }) {
  const { codes } = useMessages();
  const open = useOpenCode();
  const hasRoom = useMedia('(min-width: 1200px)');
  const { code, error, retry } = useCode(id);
  const close = () => open(undefined);
  const title = code ? nameOfCode(code) : '';
  const content = error ? <LoadFailed error={error} retry={retry} /> : code ? <Details code={code} /> : <Loading />;
  if (!hasRoom) {
    return (
      <Dialog kind="side" title={title} isOpen onClose={close}>
        {content}
      </Dialog>
    );
  }
  return (
    <aside className={styles.panel} aria-label={codes.panel.label(title)}>
      <header className={styles.panelHeader}>
        <h2>{title}</h2>
        <IconButton
          icon={X}
          label={codes.panel.close}
          onPress={() => {
            list.current?.focus({ preventScroll: true });
            close();
          }}
        />
      </header>
      {content}
    </aside>
  );
}

function Details({ code }: { readonly code: Code }) {
  const { codes } = useMessages();
  const format = useFormat();
  const mayEdit = useMay('editor');
  const actions = useCodeActions();
  const isStatic = code.type === CodeType.STATIC;
  return (
    <div className={styles.details}>
      <div className={styles.image}>
        <StoredCodeImage code={code} label={nameOfCode(code)} />
      </div>
      <dl className={styles.facts}>
        {!isStatic && (
          <div>
            <dt>{codes.columns.url}</dt>
            <dd>
              <Copyable text={code.scanUrl} what={codes.scanUrl} />
            </dd>
          </div>
        )}
        <div>
          <dt>{codes.columns.target}</dt>
          <dd>
            {code.targetUrl === undefined ? <CodeTarget code={code} /> : <a href={code.targetUrl}>{code.targetUrl}</a>}
          </dd>
          {code.policy && <dd>{codes.hasRules}</dd>}
        </div>
        <div>
          <dt>{codes.columns.state}</dt>
          <dd>
            <CodeState code={code} />
          </dd>
        </div>
        {!isStatic && !code.deletedAt && (
          <div>
            <dt>{codes.columns.scans}</dt>
            <dd>
              {format.number(code.scanCount)} <RecentScans id={code.id} />
            </dd>
          </div>
        )}
        <div>
          <dt>{codes.columns.folder}</dt>
          <dd>{code.folder?.name ?? codes.unfiled}</dd>
        </div>
        {code.tags.length > 0 && (
          <div>
            <dt>{codes.columns.tags}</dt>
            <dd>{format.list(code.tags)}</dd>
          </div>
        )}
        <div>
          <dt>{codes.columns.changed}</dt>
          <dd>
            <RelativeTime instant={code.updatedAt} />
          </dd>
        </div>
      </dl>
      <div className={styles.buttons}>
        {mayEdit && code.deletedAt && (
          <Button icon={RotateCcw} onPress={() => void actions.restore(code)}>
            {codes.bulk.restore}
          </Button>
        )}
        {mayEdit && !isStatic && !code.deletedAt && (
          <Button icon={code.paused ? Play : Pause} onPress={() => void actions.setPaused(code, !code.paused)}>
            {code.paused ? codes.bulk.resume : codes.bulk.pause}
          </Button>
        )}
        <Link to="/codes/$codeId" params={{ codeId: code.id }} className={buttonLink.plain}>
          {codes.panel.open}
        </Link>
      </div>
    </div>
  );
}

/** The scans of the last 30 days, as a line without axes. */
function RecentScans({ id }: { readonly id: string }) {
  const { codes } = useMessages();
  const format = useFormat();
  const { data } = useQuery(AnalyticsService.method.getCodeAnalytics, { id, period: 30 });
  const line = useMemo(() => {
    const scans = data?.figures?.intervals.map((interval) => Number(interval.scans)) ?? [];
    const most = Math.max(1, ...scans);
    return scans.map((count, day) => `${day ? 'L' : 'M'}${day * 10} ${40 - (count / most) * 38}`).join('');
  }, [data]);
  const figures = data?.figures;
  if (!figures) return null;
  return (
    <>
      <span className={styles.recent}>{codes.panel.recent(format.number(figures.scans))}</span>
      {figures.scans > 0n && (
        <svg viewBox="0 0 290 42" className={styles.line} aria-hidden="true" preserveAspectRatio="none">
          <path d={line} vectorEffect="non-scaling-stroke" />
        </svg>
      )}
    </>
  );
}
