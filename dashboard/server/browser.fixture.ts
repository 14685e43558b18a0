/** The origin of an address. */
const originOf = (url: string) => new URL(url).origin;

/** A browser without a screen or scripts: it keeps cookies for each host, follows redirects, and submits forms. */
export class Browser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** The value of a cookie; undefined if there is none. */
  cookie(url: string, name: string): string | undefined {
    return this.#jar(url).get(name);
  }

  /** The names of the cookies for a host, those set first before others. */
  cookieNames(url: string): readonly string[] {
    return [...this.#jar(url).keys()];
  }

  setCookie(url: string, name: string, value: string): void {
    this.#jar(url).set(name, value);
  }

  /** Sends one request, without following redirects. Like browsers, it names the page's origin unless it is a GET. */
  async request(url: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    const jar = this.#jar(url);
    if (jar.size > 0) headers.set('cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '));
    if ((init.method ?? 'GET') !== 'GET' && !headers.has('origin')) headers.set('origin', originOf(url));
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(20_000), ...init, headers });
    for (const each of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      if (value === '' || /expires=Thu, 01 Jan 1970/i.test(each)) jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }

  /**
   * Opens a page and follows redirects, until one leads to an address that `stopAt` accepts: then it returns that
   * address without opening it.
   */
  async open(url: string, init?: RequestInit, stopAt = (_next: string) => false): Promise<Page> {
    let at = url;
    let response = await this.request(at, init);
    for (let redirects = 0; response.status >= 300 && response.status < 400 && redirects < 20; redirects++) {
      await response.body?.cancel();
      at = new URL(response.headers.get('location') ?? '', at).href;
      if (stopAt(at)) return { url: at, status: 0, headers: response.headers, html: '' };
      response = await this.request(at);
    }
    return { url: at, status: response.status, headers: response.headers, html: await response.text() };
  }

  /** Submits the form of a page, with its hidden fields and `values`. */
  submit(page: Page, values: Readonly<Record<string, string>>, stopAt?: (next: string) => boolean): Promise<Page> {
    const [, action = ''] = /<form[^>]* action="([^"]*)"/.exec(page.html) ?? [];
    const hidden = [...page.html.matchAll(/<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?/g)];
    const fields = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value]));
    const body = new URLSearchParams({ ...fields, ...values });
    return this.open(new URL(action, page.url).href, { method: 'POST', body }, stopAt);
  }

  #jar(url: string): Map<string, string> {
    const { host } = new URL(url);
    const jar = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, jar);
    return jar;
  }
}

export interface Page {
  readonly url: string;
  /** 0: the browser stopped before it opened the page. */
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
}
