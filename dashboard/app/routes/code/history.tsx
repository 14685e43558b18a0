import { clone, equals } from '@bufbuild/protobuf';
import { useInfiniteQuery } from '@connectrpc/connect-query';
import { RotateCcw } from 'lucide-react';
import { useState } from 'react';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Policy, PolicySchema } from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { type Target, TargetsService } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { Button } from '../../components/button.tsx';
import { LoadMore } from '../../components/load-more.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Section } from '../../components/page.tsx';
import { RelativeTime } from '../../components/time.tsx';
import { useMay } from '../../data/session.ts';
import { useMessages } from '../../messages/index.ts';
import styles from './history.module.css';
import { useRollBack } from './target-changes.ts';

/** Everything that the code has ever led to, newest first: who changed it, when, from what, to what. */
export function History({ code }: { readonly code: Code }) {
  const { target: texts } = useMessages();
  const mayEdit = useMay('editor');
  const query = useInfiniteQuery(
    TargetsService.method.listTargetVersions,
    { id: code.id, limit: 25, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  const rollBack = useRollBack(code.id);
  // The version that is being gone back to: two calls at once would take each other for another person’s.
  const [wanted, setWanted] = useState<number>();
  const versions = query.data?.pages.flatMap((page) => page.versions) ?? [];
  const current = versions[0]?.version ?? 0;
  const goBack = async (version: number) => {
    if (wanted !== undefined) return;
    setWanted(version);
    await rollBack(version, current);
    setWanted(undefined);
  };
  return (
    <Section title={texts.history.title}>
      <Loaded query={query}>
        {() => (
          <ol className={styles.versions}>
            {versions.map((version, index) => (
              <li key={version.version} className={version.version === current ? styles.current : styles.version}>
                <div className={styles.head}>
                  <span>
                    <strong>
                      {version.version === current ? texts.history.current : texts.history.version(version.version)}
                    </strong>{' '}
                    <span className={styles.muted}>
                      <RelativeTime instant={version.createdAt} /> <Author author={version.author} />
                    </span>
                  </span>
                  {mayEdit && version.version !== current && (
                    <Button
                      look="quiet"
                      icon={RotateCcw}
                      isPending={wanted === version.version}
                      onPress={() => void goBack(version.version)}
                    >
                      {texts.history.rollBack}
                      <span className="visually-hidden"> ({texts.history.version(version.version)})</span>
                    </Button>
                  )}
                </div>
                {version.note !== '' && <p>{version.note}</p>}
                <Change version={version} before={versions[index + 1]} />
              </li>
            ))}
          </ol>
        )}
      </Loaded>
      <LoadMore query={query} />
    </Section>
  );
}

function Author({ author }: { readonly author: string }) {
  const { target: texts } = useMessages();
  if (author === '') return null;
  return <>{texts.history.by(author === 'api' ? texts.history.api : author)}</>;
}

/** What the version changed: the address, from and to, and the rules. */
function Change({ version, before }: { readonly version: Target; readonly before: Target | undefined }) {
  const { history } = useMessages().target;
  if (!before) return <p className={styles.address}>{version.targetUrl}</p>;
  const [rules, rulesBefore] = [version.policy?.rules.length ?? 0, before.policy?.rules.length ?? 0];
  const words: string[] = [];
  if (!samePolicy(version.policy, before.policy)) {
    if (rules !== rulesBefore) words.push(history.rules(rulesBefore, rules));
    else words.push(sameRules(version.policy, before.policy) ? history.settingsChanged : history.rulesChanged);
  }
  return (
    <>
      {version.targetUrl !== before.targetUrl && (
        <dl className={styles.change}>
          <dt>{history.from}</dt>
          <dd className={styles.address}>{before.targetUrl}</dd>
          <dt>{history.to}</dt>
          <dd className={styles.address}>{version.targetUrl}</dd>
        </dl>
      )}
      {words.map((word) => (
        <p key={word}>{word}</p>
      ))}
    </>
  );
}

function samePolicy(one: Policy | undefined, other: Policy | undefined): boolean {
  return one && other ? equals(PolicySchema, one, other) : one === other;
}

function sameRules(one: Policy | undefined, other: Policy | undefined): boolean {
  if (!one || !other) return false;
  const alike = clone(PolicySchema, one);
  alike.passQuery = other.passQuery;
  alike.parameters = other.parameters;
  return equals(PolicySchema, alike, other);
}
