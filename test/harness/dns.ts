import DNS from 'dns2';
import { LOOPBACK } from '../../local/free-port.ts';
import { afterFile } from './after-file.ts';

const { Packet } = DNS;

type RecordType = 'A' | 'AAAA' | 'CNAME' | 'TXT';

/** A TXT record may consist of several strings. */
type Value = string | string[];

/** A DNS server on the loopback interface, stopped after the calling file's tests. */
export interface Dns {
  /** For `DNS_RESOLVERS`. */
  readonly address: string;
  /** `broken`: answers SERVFAIL; `silent`: receives queries and answers none. */
  mode: 'answering' | 'broken' | 'silent';
  /** Called for each query. */
  onQuery: (name: string) => void;
  /** Called after each answer, for names that change. */
  onAnswer: (name: string, type: string) => void;
  /** Replaces the records of a name; without values it has none. */
  set(name: string, type: RecordType, ...values: Value[]): void;
}

/** Starts the server; it follows aliases in its own records, as a resolver does. */
export async function startDns(): Promise<Dns> {
  const zone = new Map<string, Map<RecordType, Value[]>>();

  function answersTo({ name, type }: { name: string; type: number }): DNS.Packet.Resource[] {
    const records = zone.get(name.toLowerCase());
    const [alias] = records?.get('CNAME') ?? [];
    const answered = alias === undefined ? (Packet.TYPE_NAME[type] as RecordType) : 'CNAME';
    const own = (records?.get(answered) ?? []).map((value) => {
      const common = { name, type: Packet.TYPE[answered], class: Packet.CLASS.IN, ttl: 300 };
      return new Packet.Resource({ ...common, ...dataOf(answered, value) });
    });
    return alias === undefined || type === Packet.TYPE.CNAME ? own : [...own, ...answersTo({ name: `${alias}`, type })];
  }

  const server = DNS.createUDPServer((request, send) => {
    const [question] = request.questions;
    if (!question) return;
    dns.onQuery(question.name);
    if (dns.mode === 'silent') return;
    const response = Packet.createResponseFromRequest(request);
    if (dns.mode === 'broken') response.header.rcode = Packet.RCODE.SERVFAIL;
    else if (!zone.has(question.name.toLowerCase())) response.header.rcode = Packet.RCODE.NXDOMAIN;
    else response.answers = answersTo(question);
    send(response);
    dns.onAnswer(question.name, `${Packet.TYPE_NAME[question.type]}`);
  });
  await server.listen(0, LOOPBACK);
  afterFile(() => new Promise<void>((resolve) => void server.close(resolve)));
  const dns: Dns = {
    address: `${LOOPBACK}:${server.address().port}`,
    mode: 'answering',
    onQuery: () => undefined,
    onAnswer: () => undefined,
    set(name, type, ...values) {
      const records = zone.get(name) ?? new Map<RecordType, Value[]>();
      records.set(type, values);
      if ([...records.values()].some(({ length }) => length > 0)) zone.set(name, records);
      else zone.delete(name);
    },
  };
  return dns;
}

function dataOf(type: RecordType, value: Value): Partial<DNS.Packet.Resource> {
  if (type === 'TXT') return { data: value };
  return type === 'CNAME' ? { domain: `${value}` } : { address: `${value}` };
}
