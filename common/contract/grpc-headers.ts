import type grpc from '@grpc/grpc-js';

/** Converts gRPC metadata to headers: binary values in base64, as on the wire. */
export function headersOf(metadata: grpc.Metadata): Headers {
  const headers = new Headers();
  for (const key of Object.keys(metadata.getMap())) {
    for (const value of metadata.get(key)) {
      headers.append(key, typeof value === 'string' ? value : value.toString('base64'));
    }
  }
  return headers;
}
