import { create } from '@bufbuild/protobuf';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { WifiSecurity } from '../proto/gen/signpost/codes/v1/codes_pb.ts';
import { LandingPageSchema } from '../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { codeAnalyticsCommand } from './code-analytics.ts';
import { dynamicCodeCommands } from './code-dynamic.ts';
import { codeImageCommand } from './code-image.ts';
import { showCode } from './code-output.ts';
import { connectCore, UsageError } from './core.ts';
import { colour, example, ofAccount } from './options.ts';
import { jsonOption } from './output.ts';

const SECURITY = { wpa: WifiSecurity.WPA, wep: WifiSecurity.WEP, none: WifiSecurity.NONE } as const;

interface NameAndDesign {
  readonly account: string;
  readonly name?: string;
  readonly foreground?: string;
  readonly background?: string;
}

interface StaticOptions extends NameAndDesign {
  readonly payload?: string;
  readonly wifiSsid?: string;
  readonly wifiPassword?: string;
  readonly wifiSecurity?: keyof typeof SECURITY;
  readonly wifiHidden: boolean;
}

interface PageOptions {
  readonly title?: string;
  readonly text?: string;
  readonly link?: readonly { label: string; url: string }[];
  readonly pageForeground?: string;
  readonly pageBackground?: string;
}

interface LandingOptions extends NameAndDesign, PageOptions {
  readonly domain?: string;
}

/** `code …`: manages codes of all types. */
export function codeCommands(code: Command): void {
  const json = jsonOption(code);
  dynamicCodeCommands(code);
  codeImageCommand(code);
  codeAnalyticsCommand(code);

  const createStatic = nameAndDesign(code.command('create-static'))
    .description('create a static code, with Wi-Fi credentials or any text as its payload')
    .option('--payload <text>', 'the payload, at most 2,331 bytes')
    .option('--wifi-ssid <name>', 'the network’s name, instead of a payload')
    .option('--wifi-password <password>', 'its password; none on an open network')
    .addOption(new Option('--wifi-security <kind>', 'the security of the network').choices(Object.keys(SECURITY)))
    .option('--wifi-hidden', 'the network does not announce its name', false);
  example(
    createStatic,
    'code create-static --account acct_… --wifi-ssid Guests --wifi-password "pasta e basta"',
  ).action(async (options: StaticOptions) => {
    if ((options.payload === undefined) === (options.wifiSsid === undefined)) {
      createStatic.error('error: say what the code carries, by either --payload or --wifi-ssid');
    }
    const { payload, wifiPassword, wifiSecurity, wifiHidden } = options;
    if (payload !== undefined && (wifiHidden || (wifiPassword ?? wifiSecurity) !== undefined)) {
      createStatic.error('error: --wifi-password, --wifi-security and --wifi-hidden require --wifi-ssid');
    }
    const { codes } = await connectCore(process.env, options.account);
    showCode(
      createStatic,
      json(),
      await codes.createStaticCode({ ...nameAndDesignOf(options), content: contentOf(options) }),
    );
  });

  const createLanding = page(
    nameAndDesign(code.command('create-landing')).requiredOption('--title <title>', 'its heading'),
  )
    .description('create a code whose scans show a landing page')
    .option('--domain <id>', 'domain_…: a verified custom domain to print it on');
  example(
    createLanding,
    'code create-landing --account acct_… --title Menu --text "Today: ribollita" --link "Order=https://example.com"',
  ).action(async (options: LandingOptions) => {
    const { domain } = options;
    const { codes } = await connectCore(process.env, options.account);
    const created = await codes.createLandingPageCode({
      ...nameAndDesignOf(options),
      ...(domain === undefined ? {} : { domainId: domain }),
      landingPage: pageOf(options),
    });
    showCode(createLanding, json(), created);
  });

  const updateLanding = page(ofAccount(code.command('update-landing')).requiredOption('--id <id>', 'qr_…'))
    .description('change a landing page; options not given stay unchanged, and the print stays valid')
    .option('--title <title>', 'its heading');
  example(updateLanding, 'code update-landing --account acct_… --id qr_… --text "Today: pappa al pomodoro"').action(
    async (options: { account: string; id: string } & PageOptions) => {
      const changes = pageOf(options);
      if (Object.keys(changes).length === 0) {
        throw new UsageError('Give at least one of --title, --text, --link, --page-foreground and --page-background.');
      }
      const { codes } = await connectCore(process.env, options.account);
      const before = (await codes.getCode({ id: options.id })).code?.landingPage ?? create(LandingPageSchema);
      const { title, text, links, foregroundColor, backgroundColor } = before;
      const changed = await codes.updateCode({
        id: options.id,
        updateMask: { paths: ['landing_page'] },
        landingPage: { title, text, links, foregroundColor, backgroundColor, ...changes },
      });
      showCode(updateLanding, json(), changed);
    },
  );
}

function nameAndDesign(command: Command): Command {
  return ofAccount(command)
    .option('--name <name>', 'a name of your own')
    .option('--foreground <colour>', 'the image’s modules, #rgb or #rrggbb', colour)
    .option('--background <colour>', 'the image’s background', colour);
}

function page(command: Command): Command {
  return command
    .option('--text <text>', 'plain text below the heading, or none if it is empty; line breaks are kept')
    .option('--link <label=url>', 'a link below the text; may be repeated', link)
    .option('--page-foreground <colour>', 'the page’s text colour, #rgb or #rrggbb', colour)
    .option('--page-background <colour>', 'the page’s background colour', colour);
}

function pageOf({ title, text, link: links, pageForeground, pageBackground }: PageOptions) {
  return {
    ...(title === undefined ? {} : { title }),
    ...(text === undefined ? {} : { text }),
    ...(links === undefined ? {} : { links: [...links] }),
    ...(pageForeground === undefined ? {} : { foregroundColor: pageForeground }),
    ...(pageBackground === undefined ? {} : { backgroundColor: pageBackground }),
  };
}

function nameAndDesignOf({ name, foreground, background }: NameAndDesign) {
  return {
    ...(name === undefined ? {} : { name }),
    design: { foregroundColor: foreground ?? '', backgroundColor: background ?? '' },
  };
}

function contentOf({ payload, wifiSsid, wifiPassword = '', wifiSecurity, wifiHidden }: StaticOptions) {
  if (payload !== undefined) return { case: 'payload' as const, value: payload };
  const security = wifiSecurity === undefined ? WifiSecurity.UNSPECIFIED : SECURITY[wifiSecurity];
  const wifi = { ssid: wifiSsid ?? '', password: wifiPassword, security, hidden: wifiHidden };
  return { case: 'wifi' as const, value: wifi };
}

function link(text: string, before: readonly { label: string; url: string }[] = []) {
  const [, label, url] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (label === undefined || url === undefined) throw new InvalidArgumentError('It must be LABEL=URL.');
  return [...before, { label, url }];
}
