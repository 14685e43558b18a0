import type { Conditions } from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { type Format, useFormat } from '../../data/format.ts';
import { type Messages, useMessages } from '../../messages/index.ts';

/** Days of a week as policies name them, Monday first. */
export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

/** Devices and operating systems that conditions are offered for; policies may name others too. */
export const DEVICES = ['mobile', 'tablet', 'desktop', 'bot', 'other'] as const;
export const SYSTEMS = ['iOS', 'Android', 'Windows', 'macOS', 'Linux', 'Chrome OS', 'HarmonyOS'] as const;

/** Says in words when a rule applies: one phrase per condition, none if it always does. */
export function useConditionWords(): (when: Conditions | undefined) => string[] {
  const messages = useMessages();
  const format = useFormat();
  return (when) => conditionWords(when, messages, format);
}

function conditionWords(when: Conditions | undefined, { target, charts }: Messages, format: Format): string[] {
  if (!when) return [];
  const { from, until, weekly, countries, languages, devices, operatingSystems } = when;
  const words = target.when;
  const all = (values: readonly string[], name: (value: string) => string) => format.list(values.map(name));
  return [
    ...(from ? [words.from(format.exact(from))] : []),
    ...(until ? [words.until(format.exact(until))] : []),
    ...(weekly ? [words.weekly(all(weekly.days, format.weekday), weekly.from, weekly.until, weekly.timeZone)] : []),
    ...(countries.length > 0
      ? [words.countries(all(countries, (code) => format.country(code) ?? target.unknownCountry))]
      : []),
    ...(languages.length > 0 ? [words.languages(all(languages, format.language))] : []),
    ...(devices.length > 0
      ? [words.devices(all(devices, (device) => charts.devices[device as (typeof DEVICES)[number]] ?? device))]
      : []),
    ...(operatingSystems.length > 0
      ? [words.systems(all(operatingSystems, (name) => systemName(name, target.unknownSystem)))]
      : []),
  ];
}

/** An operating system in its own spelling, `iOS` of `ios`. */
function systemName(name: string, unknown: string): string {
  if (name === 'unknown') return unknown;
  return SYSTEMS.find((system) => system.toLowerCase() === name) ?? name;
}
