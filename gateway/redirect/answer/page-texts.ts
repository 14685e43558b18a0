import { acceptedLanguages } from '../../../common/targets/language.ts';

/** The pages that a visitor may be shown instead of a target. */
export type PageKind = 'paused' | 'gone' | 'unknown' | 'unavailable';

interface PageText {
  readonly title: string;
  readonly text: string;
}

/** Texts of the pages by language (BCP 47). English is the fallback. */
export const PAGE_TEXTS = {
  en: {
    paused: { title: 'This code is paused', text: 'Its owner has paused it for now. Please try again later.' },
    gone: { title: 'This code is no longer active', text: 'Its owner has taken it out of service.' },
    unknown: { title: 'There is nothing here', text: 'This code does not exist. Was the address typed by hand?' },
    unavailable: {
      title: 'Just a moment',
      text: 'We can’t look this code up right now. Please scan it again shortly.',
    },
  },
  de: {
    paused: {
      title: 'Dieser Code pausiert',
      text: 'Er wurde vorübergehend angehalten. Bitte versuchen Sie es später noch einmal.',
    },
    gone: { title: 'Dieser Code ist nicht mehr aktiv', text: 'Er wurde außer Betrieb genommen.' },
    unknown: { title: 'Hier ist nichts', text: 'Diesen Code gibt es nicht. Wurde die Adresse von Hand eingegeben?' },
    unavailable: {
      title: 'Einen Augenblick',
      text: 'Wir können diesen Code gerade nicht nachschlagen. Bitte scannen Sie ihn gleich noch einmal.',
    },
  },
  fr: {
    paused: { title: 'Ce code est en pause', text: 'Il a été suspendu pour le moment. Veuillez réessayer plus tard.' },
    gone: { title: 'Ce code n’est plus actif', text: 'Il a été mis hors service.' },
    unknown: { title: 'Il n’y a rien ici', text: 'Ce code n’existe pas. L’adresse a-t-elle été saisie à la main ?' },
    unavailable: {
      title: 'Un instant',
      text: 'Nous ne pouvons pas consulter ce code pour le moment. Veuillez le scanner à nouveau dans un instant.',
    },
  },
  es: {
    paused: { title: 'Este código está en pausa', text: 'Se ha detenido por ahora. Inténtelo de nuevo más tarde.' },
    gone: { title: 'Este código ya no está activo', text: 'Ha sido retirado del servicio.' },
    unknown: { title: 'Aquí no hay nada', text: 'Este código no existe. ¿Se escribió la dirección a mano?' },
    unavailable: {
      title: 'Un momento',
      text: 'No podemos consultar este código ahora mismo. Vuelva a escanearlo en unos instantes.',
    },
  },
  pt: {
    paused: { title: 'Este código está em pausa', text: 'Foi suspenso por enquanto. Tente novamente mais tarde.' },
    gone: { title: 'Este código já não está ativo', text: 'Foi retirado de serviço.' },
    unknown: { title: 'Não há nada aqui', text: 'Este código não existe. O endereço foi digitado à mão?' },
    unavailable: {
      title: 'Um momento',
      text: 'Não conseguimos consultar este código agora. Leia-o novamente dentro de instantes.',
    },
  },
  zh: {
    paused: { title: '此二维码已暂停', text: '发布者已暂时停用，请稍后再试。' },
    gone: { title: '此二维码已失效', text: '发布者已将其停用。' },
    unknown: { title: '这里什么都没有', text: '此二维码不存在。网址是手动输入的吗？' },
    unavailable: { title: '请稍候', text: '暂时无法查询此二维码，请稍后再次扫描。' },
  },
  ja: {
    paused: {
      title: 'このコードは一時停止中です',
      text: '現在ご利用いただけません。しばらくしてからもう一度お試しください。',
    },
    gone: { title: 'このコードは無効になりました', text: '公開が終了しています。' },
    unknown: { title: 'ページが見つかりません', text: 'このコードは存在しません。アドレスを手で入力しましたか？' },
    unavailable: {
      title: '少々お待ちください',
      text: '現在このコードを確認できません。しばらくしてからもう一度読み取ってください。',
    },
  },
} as const satisfies Record<string, Record<PageKind, PageText>>;

export type Language = keyof typeof PAGE_TEXTS;

/** The supported language that the visitor prefers according to `Accept-Language`. */
export function languageOf(acceptLanguage: string | undefined): Language {
  const languages = acceptedLanguages(acceptLanguage).map((tag) => tag.split('-')[0] ?? '');
  return (languages.find((language) => Object.hasOwn(PAGE_TEXTS, language)) ?? 'en') as Language;
}
