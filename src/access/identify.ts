import type { DescMethod } from '@bufbuild/protobuf';
import type { ContextValues } from '@connectrpc/connect';
import ipaddr from 'ipaddr.js';
import {
  API_KEY_PREFIX,
  bearerToken,
  invalidApiKey,
  looksLikeApiKey,
  missingApiKey,
} from '../../common/contract/api-key.ts';
import { failure } from '../../common/contract/errors.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import { Caller as CallerKind } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { peerKey } from './caller.ts';
import { isForMembers } from './member-role.ts';
import { requirementsOf, type StandardCallers, standardService } from './requirements.ts';
import type { ServiceTokens } from './service-token.ts';

/** Maximum length of an actor's name in the audit. */
const MAX_ACTOR_LENGTH = 200;

/** Whether anyone at this peer's address may call the method. */
export function needsNoToken(method: DescMethod, values: ContextValues, standardCallers: StandardCallers): boolean {
  const standard = standardService(method);
  if (standard === undefined || standardCallers[standard] === 'nobody') return false;
  return standardCallers[standard] === 'everyone' || isLoopback(values.get(peerKey).address);
}

/**
 * The actor's name of an internal caller; for a caller that presents something like an API key, that token. Fails with
 * INTERNAL_METHOD if an internal caller names a member and members cannot call the method.
 */
export function identify(
  method: DescMethod,
  header: Headers,
  values: ContextValues,
  tokens: ServiceTokens,
): { readonly actor: string } | { readonly token: string } {
  const { caller, role } = requirementsOf(method);
  const token = bearerToken(header.get('authorization'));
  // A certificate identifies the caller only if nothing else does.
  const peer = token === undefined ? values.get(peerKey).certificateName : undefined;
  // Only internal callers name an account.
  const meantAsService = caller === CallerKind.SERVICE || header.has(METADATA.account);
  if (token === undefined && peer === undefined) throw meantAsService ? missingServiceToken() : missingApiKey();
  if (token === undefined || tokens.has(token)) {
    if (header.has(METADATA.member) && !isForMembers(role)) {
      throw failure('INTERNAL_METHOD', 'This method is for internal services; a member cannot call it.');
    }
    return { actor: (header.get(METADATA.actor) || peer || 'service').slice(0, MAX_ACTOR_LENGTH) };
  }
  if (looksLikeApiKey(token)) return { token };
  throw meantAsService || !token.startsWith(API_KEY_PREFIX) ? invalidServiceToken() : invalidApiKey();
}

function missingServiceToken() {
  return failure('INVALID_SERVICE_TOKEN', 'The service token is needed: `authorization: Bearer $SERVICE_TOKEN`.');
}

function invalidServiceToken() {
  return failure('INVALID_SERVICE_TOKEN', 'This is neither the service token nor an API key.');
}

/** `address`: empty if the connection is closed already. */
function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}
