import { Link, useParams } from '@tanstack/react-router';
import { ArrowLeft, Ellipsis, Pause, Pencil, Play, RotateCcw, Trash2 } from 'lucide-react';
import { useEffect, useState } from 'react';
import { type Code, CodeType } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Button } from '../../components/button.tsx';
import { CodeState } from '../../components/code-state.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Copyable } from '../../components/copy-button.tsx';
import { catchFocus } from '../../components/focus.ts';
import { LoadFailed } from '../../components/loaded.tsx';
import { Loading } from '../../components/loading.tsx';
import { Menu } from '../../components/menu.tsx';
import { Notice, Page } from '../../components/page.tsx';
import { useCodeActions } from '../../data/code-actions.ts';
import { isolated, nameOfCode } from '../../data/code-names.ts';
import { useMay } from '../../data/session.ts';
import { useCode } from '../../data/use-code.ts';
import { useMessages } from '../../messages/index.ts';
import { Analytics } from './analytics.tsx';
import styles from './code.module.css';
import { DetailsPanel } from './details-panel.tsx';
import { History } from './history.tsx';
import { ImagePanel } from './image-panel.tsx';
import { LandingPageSection, StaticContent } from './other-types.tsx';
import { RenameDialog } from './rename-dialog.tsx';
import { TargetSection } from './target-section.tsx';

/** One code: its image, where it leads, who scanned it, and what it led to before. */
export function CodePage() {
  const { codeId } = useParams({ from: '/codes/$codeId' });
  const { shell } = useMessages();
  const { code, error, retry } = useCode(codeId);
  if (code) return <Loaded key={codeId} code={code} />;
  return (
    <Page title={shell.nav.codes} subtitle={<BackLink />}>
      {error ? <LoadFailed error={error} retry={retry} /> : <Loading />}
    </Page>
  );
}

/**
 * A code. All that can be done with a deleted one is to restore it; a form that was open when another person deleted it
 * stays, with what was entered.
 */
function Loaded({ code }: { readonly code: Code }) {
  const { codes, code: texts, common } = useMessages();
  const mayEdit = useMay('editor');
  const actions = useCodeActions();
  const [dialog, setDialog] = useState<'rename' | 'delete'>();
  const isStatic = code.type === CodeType.STATIC;
  const isDeleted = code.deletedAt !== undefined;
  const close = () => setDialog(undefined);
  return (
    <Page
      title={nameOfCode(code)}
      subtitle={
        <div className={styles.subtitle}>
          <BackLink />
          <CodeState code={code} />
          {!isStatic && !isDeleted && <Copyable text={code.scanUrl} what={codes.scanUrl} href={code.scanUrl} />}
        </div>
      }
      actions={
        mayEdit &&
        !isDeleted && (
          <>
            {!isStatic && (
              <Button icon={code.paused ? Play : Pause} onPress={() => void actions.setPaused(code, !code.paused)}>
                {code.paused ? codes.bulk.resume : codes.bulk.pause}
              </Button>
            )}
            <Menu
              label={texts.more}
              actions={[
                { id: 'rename', label: texts.details.rename, icon: Pencil, onAction: () => setDialog('rename') },
                {
                  id: 'delete',
                  label: common.delete,
                  icon: Trash2,
                  isDanger: true,
                  onAction: () => setDialog('delete'),
                },
              ]}
            >
              <Button icon={Ellipsis}>{common.more}</Button>
            </Menu>
          </>
        )
      }
    >
      {isDeleted && <Deleted code={code} />}
      <div className={isDeleted ? styles.main : styles.columns}>
        {!isDeleted && (
          <div className={styles.side}>
            <ImagePanel code={code} />
            <div className={styles.details}>
              <DetailsPanel code={code} />
            </div>
          </div>
        )}
        <div className={styles.main}>
          {code.type === CodeType.DYNAMIC && <TargetSection code={code} />}
          {code.type === CodeType.LANDING_PAGE && <LandingPageSection code={code} />}
          {!isDeleted && (isStatic ? <StaticContent code={code} /> : <Analytics code={code} />)}
          {!isDeleted && code.type === CodeType.DYNAMIC && <History code={code} />}
        </div>
      </div>
      {dialog === 'rename' && <RenameDialog code={code} onClose={close} />}
      <Confirm
        title={texts.delete.title(isolated(nameOfCode(code)))}
        isOpen={dialog === 'delete'}
        onClose={close}
        action={common.delete}
        onConfirm={() => actions.remove(code)}
      >
        {texts.delete.text}
      </Confirm>
    </Page>
  );
}

function Deleted({ code }: { readonly code: Code }) {
  const { codes, code: texts } = useMessages();
  const mayEdit = useMay('editor');
  const actions = useCodeActions();
  // The button that had the focus is gone: first the menu of what can be done with the code, then the one that restores
  // it.
  useEffect(() => {
    catchFocus();
    return () => void requestAnimationFrame(catchFocus);
  }, []);
  return (
    <>
      <Notice
        look="warning"
        action={
          mayEdit && (
            <Button icon={RotateCcw} onPress={() => void actions.restore(code)}>
              {codes.bulk.restore}
            </Button>
          )
        }
      >
        {texts.deleted}
      </Notice>
      <p className={styles.muted}>{code.targetUrl}</p>
    </>
  );
}

function BackLink() {
  const { code } = useMessages();
  return (
    <Link to="/codes" className={styles.back}>
      <ArrowLeft aria-hidden size={16} />
      {code.back}
    </Link>
  );
}
