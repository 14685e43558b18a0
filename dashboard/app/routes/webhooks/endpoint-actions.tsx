import { useNavigate, useRouter } from '@tanstack/react-router';
import { Ellipsis, KeyRound, Pencil, Power, Send, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { type Endpoint, WebhooksService } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { StayGuard } from '../../components/leave-guard.tsx';
import { Menu } from '../../components/menu.tsx';
import { useAction } from '../../data/use-action.ts';
import { useMessages } from '../../messages/index.ts';
import { EndpointForm } from './endpoint-form.tsx';

interface EndpointActionsProps {
  readonly endpoint: Endpoint;
  /** A test event was sent: its delivery. */
  readonly onTest: (deliveryId: string) => void;
  /** The endpoint has a new secret, which is shown once. */
  readonly onSecret: (secret: string) => void;
}

/** What can be done with an endpoint. */
export function EndpointActions({ endpoint, onTest, onSecret }: EndpointActionsProps) {
  const { webhooks: texts, common } = useMessages();
  const navigate = useNavigate();
  const { history } = useRouter();
  const [asked, setAsked] = useState<'edit' | 'rotate' | 'disable' | 'delete'>();
  const { id, url, enabled } = endpoint;
  const test = useAction(WebhooksService.method.sendTestEvent);
  const enable = useAction(WebhooksService.method.updateEndpoint, { done: texts.enabled });
  const disable = useAction(WebhooksService.method.updateEndpoint, { done: texts.saved });
  const rotate = useAction(WebhooksService.method.rotateSecret, { unknown: texts.rotateUnknown });
  const remove = useAction(WebhooksService.method.deleteEndpoint, { done: texts.deleted });
  const close = () => setAsked(undefined);
  const sendTest = async () => onTest((await test.run({ id })).delivery?.id ?? '');
  const leave = async () => {
    // The person may have left already.
    if (history.location.pathname === `/webhooks/${id}`) await navigate({ to: '/webhooks' });
  };
  const setEnabled = (action: typeof enable, wanted: boolean) =>
    action.run({ id, enabled: wanted, updateMask: { paths: ['enabled'] } });
  return (
    <>
      <StayGuard isNeeded={rotate.isRunning} />
      <Button
        icon={Send}
        isDisabled={!enabled}
        isPending={test.isPending}
        onPress={() => void sendTest().catch(() => undefined)}
      >
        {texts.sendTest}
      </Button>
      <Menu
        label={common.actions}
        actions={[
          { id: 'edit', label: texts.edit, icon: Pencil, onAction: () => setAsked('edit') },
          enabled
            ? { id: 'disable', label: texts.disable, icon: Power, onAction: () => setAsked('disable') }
            : {
                id: 'enable',
                label: texts.enable,
                icon: Power,
                onAction: () => void setEnabled(enable, true).catch(() => undefined),
              },
          { id: 'rotate', label: texts.rotate, icon: KeyRound, onAction: () => setAsked('rotate') },
          { id: 'delete', label: texts.delete, icon: Trash2, isDanger: true, onAction: () => setAsked('delete') },
        ]}
      >
        <Button icon={Ellipsis}>{common.more}</Button>
      </Menu>
      {asked === 'edit' && <EndpointForm endpoint={endpoint} onClose={close} />}
      <Confirm
        onClose={close}
        title={texts.disableTitle}
        isOpen={asked === 'disable'}
        action={texts.disable}
        onConfirm={() => setEnabled(disable, false)}
      >
        {texts.disableText}
      </Confirm>
      <Confirm
        onClose={close}
        title={texts.rotateTitle}
        isOpen={asked === 'rotate'}
        action={texts.rotate}
        onConfirm={async () => onSecret((await rotate.run({ id })).secret)}
      >
        {texts.rotateText}
      </Confirm>
      <Confirm
        onClose={close}
        title={texts.deleteTitle}
        isOpen={asked === 'delete'}
        action={texts.delete}
        name={url}
        onConfirm={() => remove.run({ id }).then(leave)}
      >
        {texts.deleteText}
      </Confirm>
    </>
  );
}
