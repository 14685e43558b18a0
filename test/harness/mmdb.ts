import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The record of a network: any JSON of objects and strings. */
type Value = string | { readonly [key: string]: Value };

/**
 * A small database in MaxMind's format (MaxMind DB 2.0): an IPv6 tree with 24-bit records, in which IPv4 networks are
 * under `::/96`. `networks`: by CIDR; they must not overlap.
 */
export function mmdbOf(networks: Readonly<Record<string, Value>>): Buffer {
  const nodes: [Child, Child][] = [[undefined, undefined]];
  const data: Buffer[] = [];
  let size = 0;
  for (const [network, value] of Object.entries(networks)) {
    const bits = bitsOf(network);
    let node = 0;
    for (const bit of bits.slice(0, -1)) node = childOf(nodes, node, bit);
    const encoded = encode(value);
    (nodes[node] as [Child, Child])[bits.at(-1) as 0 | 1] = { data: size };
    data.push(encoded);
    size += encoded.length;
  }
  const tree = Buffer.concat(
    nodes.map((pair) => {
      const bytes = Buffer.alloc(6);
      for (const [side, child] of pair.entries()) {
        const record = typeof child === 'object' ? nodes.length + 16 + child.data : (child ?? nodes.length);
        bytes.writeUIntBE(record, side * 3, 3);
      }
      return bytes;
    }),
  );
  const metadata = map({
    binary_format_major_version: number(2),
    binary_format_minor_version: number(0),
    build_epoch: number(1_790_000_000),
    database_type: encode('Test-Country'),
    description: map({}),
    ip_version: number(6),
    languages: Buffer.from([0x00, 0x04]),
    node_count: number(nodes.length),
    record_size: number(24),
  });
  return Buffer.concat([
    tree,
    Buffer.alloc(16),
    ...data,
    Buffer.from('abcdef', 'hex'),
    Buffer.from('MaxMind.com'),
    metadata,
  ]);
}

/** The child of a node: another node, data, or none. */
type Child = number | { readonly data: number } | undefined;

function childOf(nodes: [Child, Child][], node: number, bit: 0 | 1): number {
  const pair = nodes[node] as [Child, Child];
  if (typeof pair[bit] === 'number') return pair[bit];
  pair[bit] = nodes.length;
  return nodes.push([undefined, undefined]) - 1;
}

function bitsOf(network: string): (0 | 1)[] {
  const [address = '', prefix] = network.split('/');
  const isV4 = isIP(address) === 4;
  const bytes = [...(isV4 ? new Array<number>(12).fill(0) : []), ...ipaddr.parse(address).toByteArray()];
  const bits = bytes.flatMap((byte) => [...byte.toString(2).padStart(8, '0')].map((bit) => (bit === '1' ? 1 : 0)));
  return bits.slice(0, Number(prefix) + (isV4 ? 96 : 0));
}

function encode(value: Value): Buffer {
  if (typeof value !== 'string') {
    return map(Object.fromEntries(Object.entries(value).map(([key, each]) => [key, encode(each)])));
  }
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([(2 << 5) | bytes.length]), bytes]);
}

function map(entries: Readonly<Record<string, Buffer>>): Buffer {
  const encoded = Object.entries(entries).flatMap(([key, value]) => [encode(key), value]);
  return Buffer.concat([Buffer.from([(7 << 5) | (encoded.length / 2)]), ...encoded]);
}

/** An unsigned 32-bit integer. */
function number(value: number): Buffer {
  const bytes = Buffer.from([(6 << 5) | 4, 0, 0, 0, 0]);
  bytes.writeUInt32BE(value, 1);
  return bytes;
}
