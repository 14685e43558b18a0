import { writeFile } from 'node:fs/promises';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { type CertificateAuthority, newAuthority } from './certificates.ts';
import { type Broker, startKafka } from './kafka.ts';

/** A broker whose clients need a certificate, a login, and permission for every operation. */
export interface SecuredBroker extends Broker {
  /** `host:port` of the listener for clients. `brokers` is for the test itself, without restrictions. */
  readonly clients: string;
  /** `host:port` of another one, whose clients are known by the names in their certificates and need no login. */
  readonly byCertificate: string;
  /** The CA of the broker's certificate and of client certificates. */
  readonly authority: CertificateAuthority;
}

/**
 * Starts it with Kafka's own authorizer. `users`: passwords by name, for every SASL mechanism; no user has permissions
 * yet.
 */
export async function startSecuredKafka(users: Readonly<Record<string, string>>): Promise<SecuredBroker> {
  const authority = await newAuthority();
  const { certFile, cert, key } = await authority.issue('broker');
  const keystore = `${certFile}.keystore`;
  await writeFile(keystore, Buffer.concat([key, cert]), { mode: 0o600 });
  const [clients, byCertificate] = [`${LOOPBACK}:${await freePort()}`, `${LOOPBACK}:${await freePort()}`];
  const entries = Object.entries(users);
  const plainUsers = entries.map(([name, password]) => `user_${name}="${password}"`).join(' ');
  const modules = 'org.apache.kafka.common.security';
  const scram = ['SCRAM-SHA-256', 'SCRAM-SHA-512'];
  const tlsOf = (listener: string) => `
listener.name.${listener}.ssl.keystore.type=PEM
listener.name.${listener}.ssl.keystore.location=${keystore}
listener.name.${listener}.ssl.truststore.type=PEM
listener.name.${listener}.ssl.truststore.location=${authority.certFile}
listener.name.${listener}.ssl.client.auth=required
`;
  const broker = await startKafka({
    format: entries.flatMap(([name, password]) =>
      scram.flatMap((mechanism) => ['--add-scram', `${mechanism}=[name=${name},password=${password}]`]),
    ),
    settings: (listeners) => `
listeners=${listeners},CLIENTS://${clients},CERTIFICATES://${byCertificate}
advertised.listeners=${listeners.split(',')[0]},CLIENTS://${clients},CERTIFICATES://${byCertificate}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENTS:SASL_SSL,CERTIFICATES:SSL
ssl.principal.mapping.rules=RULE:^CN=(.*)$/$1/
inter.broker.listener.name=PLAINTEXT
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
listener.name.clients.sasl.enabled.mechanisms=PLAIN,${scram.join(',')}
listener.name.clients.plain.sasl.jaas.config=${modules}.plain.PlainLoginModule required ${plainUsers};
${scram.map((mechanism) => `listener.name.clients.${mechanism.toLowerCase()}.sasl.jaas.config=${modules}.scram.ScramLoginModule required;`).join('\n')}
${['clients', 'certificates'].map(tlsOf).join('')}`,
  });
  return { ...broker, clients, byCertificate, authority };
}
