import { useMemo } from 'react';
import { COUNTRIES } from '../../../../common/contract/country-codes.ts';
import type { Option } from '../../components/select.tsx';
import { useFormat } from '../../data/format.ts';
import { useLanguage } from '../../data/preferences.ts';

/** All countries by name. */
export function useCountries(): readonly Option<string>[] {
  const format = useFormat();
  const language = useLanguage();
  return useMemo(() => {
    const { compare } = new Intl.Collator(language);
    return [...COUNTRIES]
      .map((id) => ({ id, label: format.country(id) ?? id }))
      .sort((one, other) => compare(one.label, other.label));
  }, [format, language]);
}
