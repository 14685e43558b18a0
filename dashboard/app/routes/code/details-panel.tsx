import { Pencil } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { type Code, CodeType } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { IconButton } from '../../components/button.tsx';
import { Copyable } from '../../components/copy-button.tsx';
import { folderProblem, tagsProblem } from '../../components/filing-fields.tsx';
import { Panel, Section } from '../../components/page.tsx';
import { Picker } from '../../components/picker.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useCodeActions } from '../../data/code-actions.ts';
import { useFolders, useTags } from '../../data/labels.ts';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './code.module.css';
import { RenameDialog } from './rename-dialog.tsx';

/** Name, folder, tags and what else describes a code. */
export function DetailsPanel({ code }: { readonly code: Code }) {
  const { code: texts, codes, common } = useMessages();
  const mayEdit = useMay('editor');
  const actions = useCodeActions();
  const [isRenaming, setRenaming] = useState(false);
  const folders = useFolders();
  const tags = useTags();
  const { details } = texts;
  const kinds: Readonly<Record<CodeType, string>> = {
    [CodeType.UNSPECIFIED]: '',
    [CodeType.DYNAMIC]: codes.kinds.dynamic,
    [CodeType.STATIC]: codes.kinds.static,
    [CodeType.LANDING_PAGE]: codes.kinds.landing_page,
  };
  return (
    <Section title={details.title}>
      <Panel>
        <dl className={styles.facts}>
          <Fact
            title={common.name}
            action={mayEdit && <IconButton icon={Pencil} label={details.rename} onPress={() => setRenaming(true)} />}
          >
            {code.name || <span className={styles.muted}>{codes.unnamed}</span>}
          </Fact>
          <Fact
            title={details.folder}
            action={
              mayEdit && (
                <Picker
                  label={details.folder}
                  options={[
                    { id: '', label: codes.unfiled },
                    ...(folders.data?.folders ?? []).map(({ id, name }) => ({ id, label: name })),
                  ]}
                  value={[code.folder?.id ?? '']}
                  onChange={([id = '']) => void actions.file(code, id)}
                  onCreate={(name) => void actions.file(code, name)}
                  mayBeName={(name) => folderProblem(name) === undefined}
                >
                  <IconButton icon={Pencil} label={details.changeFolder} />
                </Picker>
              )
            }
          >
            {code.folder?.name ?? <span className={styles.muted}>{codes.unfiled}</span>}
          </Fact>
          <Fact
            title={details.tags}
            action={
              mayEdit && (
                <Picker
                  label={details.tags}
                  options={(tags.data?.tags ?? []).map(({ name }) => ({ id: name, label: name }))}
                  value={code.tags}
                  onChange={(chosen) => void actions.tag(code, chosen)}
                  onCreate={(name) => void actions.tag(code, [...code.tags, name])}
                  mayBeName={(name) => tagsProblem([name]) === undefined}
                  isMultiple
                >
                  <IconButton icon={Pencil} label={details.changeTags} />
                </Picker>
              )
            }
          >
            {code.tags.length === 0 ? (
              <span className={styles.muted}>{details.noTags}</span>
            ) : (
              <ul className={styles.tags}>
                {code.tags.map((tag) => (
                  <li key={tag}>{tag}</li>
                ))}
              </ul>
            )}
          </Fact>
          <Fact title={details.kind}>{kinds[code.type]}</Fact>
          {code.campaignType && <Fact title={details.campaign}>{code.campaignType}</Fact>}
          <Fact title={common.created}>
            <RelativeTime instant={code.createdAt} />
          </Fact>
          <Fact title={common.changed}>
            <RelativeTime instant={code.updatedAt} />
          </Fact>
          <Fact title={details.id}>
            <Copyable text={code.id} what={details.id} />
          </Fact>
        </dl>
      </Panel>
      {isRenaming && <RenameDialog code={code} onClose={() => setRenaming(false)} />}
    </Section>
  );
}

/** A property with, at its right, the way to change it. */
function Fact({ title, action, children }: { title: string; action?: ReactNode; children: ReactNode }) {
  return (
    <div className={styles.fact}>
      <dt>{title}</dt>
      <dd>{children}</dd>
      {action && <dd className={styles.factAction}>{action}</dd>}
    </div>
  );
}
