import type { Log } from './log.ts';

/** The start of the names of all topics, consumer groups and transactional ids, as this code knows them. */
export const PREFIX = 'signpost.';

/**
 * A log in which these names start with `prefix` instead, so that several installations can share a Kafka cluster; but
 * the groups of followers are named by `openKafkaLog`.
 */
export function prefixed(log: Log, prefix: string): Log {
  if (prefix === PREFIX) return log;
  const named = (name: string) => prefix + name.slice(PREFIX.length);
  const known = (name: string) => PREFIX + name.slice(prefix.length);
  return {
    ...log,
    publish: (topic, records) => log.publish(named(topic), records),
    async openFencedPublisher(name, over) {
      const publisher = await log.openFencedPublisher(named(name), over);
      return { ...publisher, publish: (topic, records) => publisher.publish(named(topic), records) };
    },
    consume: (options) => log.consume({ ...options, topic: named(options.topic), group: named(options.group) }),
    follow: (options) => log.follow({ ...options, topic: named(options.topic) }),
    ends: (topic) => log.ends(named(topic)),
    since: (topic, time) => log.since(named(topic), time),
    identity: (topic) => log.identity(named(topic)),
    ensureTopics: (topics, creating) =>
      log.ensureTopics(
        topics.map((topic) => ({ ...topic, name: named(topic.name) })),
        creating && ((missing) => creating(missing.map(known))),
      ),
  };
}
