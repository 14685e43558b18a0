import type { DescMethod } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import {
  codeToHttpStatus,
  contentTypeStreamJson,
  endStreamFlag,
  endStreamToJson,
  errorToJson,
} from '@connectrpc/connect/protocol-connect';
import type { FastifyReply } from 'fastify';

/** Whether a method answers with a stream of messages. */
export function isStreaming({ methodKind }: DescMethod): boolean {
  return methodKind !== 'unary';
}

/**
 * Answers a call with an error, in the form of its method (Connect protocol, "Error End-Stream" and "Unary-Response"):
 * a client reads the code of a stream's error only from its last message.
 */
export function sendError(reply: FastifyReply, method: DescMethod | undefined, error: ConnectError): FastifyReply {
  if (method && isStreaming(method)) {
    const { 'content-type': type = contentTypeStreamJson } = reply.request.headers;
    return reply
      .code(200)
      .header('content-type', type)
      .send(Buffer.from(endOfStream(error)));
  }
  const body = JSON.stringify(errorToJson(error, undefined));
  return reply.code(codeToHttpStatus(error.code)).header('content-type', 'application/json').send(body);
}

/** The last message of a stream that failed. */
export function endOfStream(error: ConnectError): Uint8Array {
  const end = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
  return encodeEnvelope(endStreamFlag, new TextEncoder().encode(end));
}
