import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { flushSync } from 'react-dom';
import { EVENT_TYPES } from '../../../../common/contract/event-types.ts';
import { type Endpoint, WebhooksService } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { Button } from '../../components/button.tsx';
import { Actions, Dialog } from '../../components/dialog.tsx';
import { Field } from '../../components/field.tsx';
import { StayGuard } from '../../components/leave-guard.tsx';
import { useAction } from '../../data/use-action.ts';
import { useIsMounted } from '../../data/use-is-mounted.ts';
import { useMessages } from '../../messages/index.ts';
import { Secret } from './secret.tsx';
import styles from './webhooks.module.css';

/** Adds an endpoint, or changes `endpoint`. Of a new one, it then shows the secret. */
export function EndpointForm({ endpoint, onClose }: { readonly endpoint?: Endpoint; readonly onClose: () => void }) {
  const { webhooks: texts, common } = useMessages();
  const navigate = useNavigate();
  const [url, setUrl] = useState(endpoint?.url ?? '');
  const [events, setEvents] = useState<readonly string[]>(endpoint?.events ?? ['qr.created', 'qr.updated']);
  const [added, setAdded] = useState<{ readonly id: string; readonly secret: string }>();
  const create = useAction(WebhooksService.method.createEndpoint, {
    errors: 'caller',
    unknown: texts.unknownResult,
  });
  const update = useAction(WebhooksService.method.updateEndpoint, { errors: 'caller', done: texts.saved });
  const isMounted = useIsMounted();
  const error = create.error ?? update.error;
  const save = async () => {
    if (endpoint) {
      await update.run({ id: endpoint.id, url, events: [...events], updateMask: { paths: ['url', 'events'] } });
      if (isMounted()) onClose();
      return;
    }
    const { endpoint: created, secret } = await create.run({ url, events: [...events] });
    // At once: until the form is gone, Enter would add another endpoint.
    flushSync(() => setAdded({ id: created?.id ?? '', secret }));
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // What is wrong is shown in the form.
    void save().catch(() => undefined);
  };
  if (added) {
    return (
      <Secret
        secret={added.secret}
        onClose={() =>
          void navigate({ to: '/webhooks/$endpointId', params: { endpointId: added.id }, ignoreBlocker: true })
        }
      />
    );
  }
  // The secret of the endpoint that is being created is shown only here.
  const close = () => {
    if (!create.isRunning()) onClose();
  };
  return (
    <Dialog title={endpoint ? texts.edit : texts.add} isOpen onClose={close}>
      <StayGuard isNeeded={create.isRunning} />
      <form onSubmit={submit} className={styles.form} noValidate>
        <Field
          label={texts.url}
          description={texts.urlNote}
          value={url}
          onChange={setUrl}
          error={error}
          inputMode="url"
          placeholder="https://"
          autoFocus
          mono
        />
        <fieldset className={styles.events}>
          <legend>{texts.events}</legend>
          {EVENT_TYPES.map((type) => (
            <label key={type}>
              <input
                type="checkbox"
                checked={events.includes(type)}
                onChange={({ target }) =>
                  setEvents(target.checked ? [...events, type] : events.filter((each) => each !== type))
                }
              />
              <span>
                <code>{type}</code>
                <span className={styles.note}>{texts.types[type]}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <p className={styles.note}>{texts.eventsNote}</p>
        <Actions>
          <Button onPress={close} isDisabled={create.isPending}>
            {common.cancel}
          </Button>
          <Button
            type="submit"
            look="primary"
            isPending={create.isPending || update.isPending}
            isDisabled={url.trim() === '' || events.length === 0}
          >
            {endpoint ? common.save : common.add}
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}
