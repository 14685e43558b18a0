import { execFile, spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { DASHBOARD_VARIABLES } from '../../dashboard/server/config.ts';
import { GATEWAY_VARIABLES } from '../../gateway/config.ts';
import { CORE_VARIABLES } from '../../src/config.ts';

/**
 * The Helm chart, by Helm itself, which is built from its Go module, and by strict decoding into the types of three
 * versions of Kubernetes: `npm run test:helm`.
 */

const HELM = 'helm.sh/helm/v3/cmd/helm@v3.19.0';
const CHART = 'deploy/helm/signpost';
const EXAMPLE = join(CHART, 'values-example.yaml');
const DECODE = resolve('test/helm/decode');
const BUILD = resolve('test/helm/build');
/** The first time, Helm and the types of Kubernetes are downloaded and compiled. */
const BUILD_MS = 600_000;

const run = promisify(execFile);
const goVersion = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).stdout ?? '';
const hasGo = Number(/^go1\.(\d+)/.exec(goVersion)?.[1] ?? 0) >= 26;

/** A document as Kubernetes would read it. */
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Record<string, string> };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has another one.
  readonly spec: any;
}

async function go(args: readonly string[], cwd = BUILD): Promise<void> {
  // Otherwise Go looks for the module that a vendor or workspace file above names.
  await run('go', args, { cwd, env: { ...process.env, GOBIN: BUILD, GOWORK: 'off' } });
}

/** Runs Helm; rejects with what it prints. */
async function helm(...args: readonly string[]): Promise<string> {
  return (await run(join(BUILD, 'helm'), args, { maxBuffer: 16 * 1024 * 1024 })).stdout;
}

function template(version: string, ...args: readonly string[]): Promise<string> {
  return helm('template', 'signpost', CHART, '--kube-version', `${version}.0`, ...args);
}

async function decode(version: string, documents: string): Promise<Manifest[]> {
  const decoding = run(join(BUILD, `decode-${version}`), { maxBuffer: 16 * 1024 * 1024 });
  decoding.child.stdin?.end(documents);
  return (await decoding).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** The versions of which test/helm/decode has modules. */
async function versions(): Promise<string[]> {
  return (await readdir(DECODE)).flatMap((file) => /^kubernetes-(.+)\.mod$/.exec(file)?.[1] ?? []).sort();
}

describe.skipIf(!hasGo && !process.env.CI)('the Helm chart (needs Go 1.26)', () => {
  let supported: string[];
  let latest: string;
  beforeAll(async () => {
    await mkdir(BUILD, { recursive: true });
    supported = await versions();
    latest = supported.at(-1) ?? '';
    await go(['install', HELM]);
    for (const version of supported) {
      await go(['build', '-modfile', `kubernetes-${version}.mod`, '-o', join(BUILD, `decode-${version}`), '.'], DECODE);
    }
  }, BUILD_MS);

  const example = () => template(latest, '--values', EXAMPLE).then((documents) => decode(latest, documents));
  const named = (objects: readonly Manifest[], kind: string, name: string) => {
    const found = objects.find((object) => object.kind === kind && object.metadata.name === `signpost-${name}`);
    if (!found) throw new Error(`there is no ${kind} ${name}`);
    return found;
  };

  test('helm lint has no complaint', async () => {
    for (const version of supported) {
      const lint = ['lint', CHART, '--strict', '--kube-version', `${version}.0`];
      await helm(...lint, '--values', EXAMPLE);
      await helm(...lint, '--set', 'publicUrl=https://sign.example');
    }
  });

  test('every document has only fields of Kubernetes, in each of three versions', async () => {
    expect(supported).toHaveLength(3);
    for (const version of supported) {
      const minimal = await decode(version, await template(version, '--set', 'publicUrl=https://sign.example'));
      expect(minimal.map(({ kind }) => kind)).not.toContain('HorizontalPodAutoscaler');
      expect(minimal.map(({ metadata }) => metadata.name)).not.toContain('signpost-dashboard');
      const full = await decode(version, await template(version, '--values', EXAMPLE));
      const count = (kind: string) => full.filter((object) => object.kind === kind).length;
      expect(
        ['Deployment', 'StatefulSet', 'Job', 'PodDisruptionBudget', 'NetworkPolicy', 'PodMonitor'].map(count),
      ).toEqual([3, 1, 1, 3, 4, 1]);
    }
    const misspelt = (await template(latest, '--values', EXAMPLE)).replace('readinessProbe', 'readynessProbe');
    await expect(decode(latest, misspelt)).rejects.toThrow('unknown field');
  });

  test('every variable that a container gets is one of its program', async () => {
    const objects = await example();
    const programs = [
      [named(objects, 'Deployment', 'core'), CORE_VARIABLES],
      [named(objects, 'Deployment', 'worker'), CORE_VARIABLES],
      [named(objects, 'StatefulSet', 'gateway'), GATEWAY_VARIABLES],
      [named(objects, 'Deployment', 'dashboard'), DASHBOARD_VARIABLES],
      [named(objects, 'Job', 'migration'), CORE_VARIABLES],
    ] as const;
    for (const [{ spec }, variables] of programs) {
      const names: string[] = spec.template.spec.containers[0].env.map(({ name }: { name: string }) => name);
      expect(new Set(names).size).toBe(names.length);
      const unknown = names.filter((name) => !(name.replace(/_FILE$/, '') in variables));
      expect(unknown).toEqual([]);
    }
  });

  test('programs are unprivileged, may drain before they are killed, and find their secrets', async () => {
    for (const { spec } of (await example()).filter(({ spec }) => spec.template)) {
      const pod = spec.template.spec;
      const [container] = pod.containers;
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.resources).toMatchObject({
        requests: { cpu: expect.anything() },
        limits: { memory: expect.anything() },
      });
      const drain = container.env.find(({ name }: { name: string }) => name === 'DRAIN_SECONDS')?.value;
      if (drain !== undefined) expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(Number(drain) + 30);
      const { sources } = pod.volumes.find(({ name }: { name: string }) => name === 'secrets').projected;
      expect(sources).toHaveLength(1);
      const files = container.env.filter(({ name }: { name: string }) => name.endsWith('_FILE'));
      expect(files.map(({ value }: { value: string }) => value)).toEqual(
        sources[0].secret.items.map(({ path }: { path: string }) => `/secrets/${path}`),
      );
    }
  });

  test('files such as private keys are mounted in the pods of their program, and in no other', async () => {
    const given = ['core', 'gateway', 'dashboard'].map((each) => `secrets.${each}.filesSecret=files-of-${each}`);
    /** Every secret that a pod mounts without naming its keys, and where. */
    const mounted = async (...settings: string[]) => {
      const rendered = await template(latest, '--values', EXAMPLE, ...settings.flatMap((each) => ['--set', each]));
      const pods = (await decode(latest, rendered)).filter(({ spec }) => spec.template);
      return Object.fromEntries(
        pods.map(({ metadata, spec }) => {
          const { volumes, containers } = spec.template.spec;
          const whole = volumes.flatMap((volume: Manifest['spec']) => {
            const { mountPath } = containers[0].volumeMounts.find(({ name }: Manifest['spec']) => name === volume.name);
            const sources = volume.projected?.sources.map(({ secret }: Manifest['spec']) => secret) ?? [volume.secret];
            return sources
              .filter((secret: Manifest['spec']) => secret && !secret.items)
              .map((secret: Manifest['spec']) => `${mountPath} ${secret.name ?? secret.secretName}`);
          });
          return [metadata.name, whole];
        }),
      );
    };
    const shared = '/config signpost-certificates';
    const ofCores = ['/secrets files-of-core', shared];
    const expected = {
      'signpost-core': ofCores,
      'signpost-worker': ofCores,
      'signpost-migration': ofCores,
      'signpost-gateway': ['/secrets files-of-gateway', shared],
      'signpost-dashboard': ['/secrets files-of-dashboard', shared],
    };
    expect(await mounted(...given)).toEqual(expected);
    const ofMigration = { 'signpost-migration': ['/secrets files-of-migration', shared] };
    const own = 'secrets.migration.filesSecret=files-of-migration';
    expect(await mounted(...given, own)).toEqual({ ...expected, ...ofMigration });
  });

  test('gateways have a volume each, call the cores that are ready, and are selected by their Services', async () => {
    const objects = await example();
    const gateway = named(objects, 'StatefulSet', 'gateway');
    expect(gateway.spec.volumeClaimTemplates[0].metadata.name).toBe('data');
    const [container] = gateway.spec.template.spec.containers;
    expect(container.env).toContainEqual({ name: 'CORE_ADDRESS', value: 'signpost-core-pods:50051' });
    const cores = named(objects, 'Service', 'core-pods');
    expect(cores.spec.clusterIP).toBe('None');
    const pods = objects.filter(({ spec }) => spec.template).map(({ spec }) => spec.template);
    for (const { spec } of objects.filter(({ kind }) => kind === 'Service')) {
      const [pod, ...others] = pods.filter(({ metadata }) =>
        Object.entries(spec.selector).every(([name, value]) => metadata.labels[name] === value),
      );
      expect(others).toEqual([]);
      const ports = pod.spec.containers[0].ports.map(({ name }: { name: string }) => name);
      for (const { targetPort } of spec.ports) expect(ports).toContain(targetPort);
    }
  });

  test('the dashboard needs an address, calls cores over Connect, and may', async () => {
    const objects = await example();
    const { env } = named(objects, 'Deployment', 'dashboard').spec.template.spec.containers[0];
    expect(env).toContainEqual({ name: 'DASHBOARD_URL', value: 'https://dashboard.sign.example' });
    expect(env).toContainEqual({ name: 'CORE_HOST', value: 'signpost-core' });
    const { ports } = named(objects, 'Service', 'core').spec;
    expect(ports).toContainEqual({ name: 'connect', port: 8081, targetPort: 'connect' });
    const rules: { from?: unknown; ports: unknown }[] = named(objects, 'NetworkPolicy', 'core').spec.ingress;
    const dashboard = named(objects, 'Deployment', 'dashboard').spec.selector;
    expect(rules).toContainEqual({ from: [{ podSelector: dashboard }], ports: [{ port: 'connect' }] });
    await expect(template(latest, '--values', EXAMPLE, '--set', 'dashboard.url=')).rejects.toThrow(
      "at '/dashboard/url'",
    );
  });

  test('a value that would do nothing is rejected', async () => {
    for (const value of [
      'core.service.port=80',
      'core.service.externalTrafficPolicy=Local',
      'core.enabled=false',
      'worker.service.type=NodePort',
      'gateway.replcas=3',
      'dashboard.autoscaling.enabled=true',
      'dashboard.disruptionBudget.maxUnavailable=1',
      'dashboard.service.externalTrafficPolicy=Local',
    ]) {
      await expect(template(latest, '--values', EXAMPLE, '--set', value), value).rejects.toThrow(
        'additional properties',
      );
    }
  });

  test('every program serves its metrics, to those that may read them', async () => {
    const render = async (...more: string[]) => decode(latest, await template(latest, '--values', EXAMPLE, ...more));
    const [monitored, annotated] = [await render(), await render('--set', 'metrics.podMonitor.enabled=false')];
    const monitoring = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } };
    for (const [kind, name] of [
      ['Deployment', 'core'],
      ['Deployment', 'worker'],
      ['StatefulSet', 'gateway'],
      ['Deployment', 'dashboard'],
    ] as const) {
      const [container] = named(monitored, kind, name).spec.template.spec.containers;
      expect(container.ports).toContainEqual({ name: 'metrics', containerPort: 9464 });
      expect(container.env).toContainEqual({ name: 'METRICS_PORT', value: '9464' });
      const { ingress } = named(monitored, 'NetworkPolicy', name).spec;
      expect(ingress).toContainEqual({ from: [monitoring], ports: [{ port: 'metrics' }] });
      const { annotations } = named(annotated, kind, name).spec.template.metadata;
      expect(annotations).toMatchObject({ 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9464' });
    }
  });

  test('workers are probed on the port of their metrics, as they have no other, even if metrics are off', async () => {
    const render = async (port: number) =>
      decode(latest, await template(latest, '--values', EXAMPLE, '--set', `metrics.port=${port}`));
    for (const [port, used] of [
      [9999, 9999],
      [0, 9464],
    ] as const) {
      const [container] = named(await render(port), 'Deployment', 'worker').spec.template.spec.containers;
      expect(container).toMatchObject({
        ports: [{ name: 'metrics', containerPort: used }],
        livenessProbe: { httpGet: { path: '/healthz', port: 'metrics' } },
        readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' } },
      });
      expect(container.env).toContainEqual({ name: 'METRICS_PORT', value: String(used) });
    }
    const off = await render(0);
    expect(named(off, 'NetworkPolicy', 'worker').spec).not.toHaveProperty('ingress');
    for (const [kind, name] of [
      ['Deployment', 'core'],
      ['StatefulSet', 'gateway'],
      ['Deployment', 'dashboard'],
    ] as const) {
      const { env } = named(off, kind, name).spec.template.spec.containers[0];
      expect(env.map((each: { name: string }) => each.name)).not.toContain('METRICS_PORT');
    }
  });

  test('a disruption budget has one of its two fields', async () => {
    const budget = async (...settings: string[]) => {
      const rendered = await template(latest, '--values', EXAMPLE, ...settings.flatMap((each) => ['--set', each]));
      return named(await decode(latest, rendered), 'PodDisruptionBudget', 'core').spec;
    };
    const minAvailable = 'core.disruptionBudget.minAvailable=2';
    expect(await budget()).toMatchObject({ maxUnavailable: 1 });
    expect(await budget(minAvailable)).toMatchObject({ minAvailable: 2 });
    expect(await budget(minAvailable)).not.toHaveProperty('maxUnavailable');
    expect(await budget('core.disruptionBudget.maxUnavailable=0')).toMatchObject({ maxUnavailable: 0 });
    await expect(budget(minAvailable, 'core.disruptionBudget.maxUnavailable=1')).rejects.toThrow(
      "at '/core/disruptionBudget'",
    );
  });

  test('a component has the number of pods that its values say, or its autoscaler decides', async () => {
    const objects = await example();
    expect(named(objects, 'Deployment', 'worker').spec.replicas).toBe(2);
    // In a cluster it is the number that runs.
    expect(named(objects, 'Deployment', 'core').spec).not.toHaveProperty('replicas');
    expect(named(objects, 'StatefulSet', 'gateway').spec).not.toHaveProperty('replicas');
  });

  test('the schema is migrated before a new core starts, and not by cores', async () => {
    const objects = await example();
    expect(named(objects, 'Job', 'migration').metadata.annotations?.['helm.sh/hook']).toBe('pre-install,pre-upgrade');
    const { env } = named(objects, 'Deployment', 'core').spec.template.spec.containers[0];
    expect(env).toContainEqual({ name: 'MIGRATE', value: 'false' });
  });

  test('a core that migrates itself may take an hour until it serves', async () => {
    const probe = async (...args: string[]) => {
      const objects = await decode(latest, await template(latest, '--values', EXAMPLE, ...args));
      return named(objects, 'Deployment', 'core').spec.template.spec.containers[0].startupProbe;
    };
    expect(await probe()).toMatchObject({ periodSeconds: 2, failureThreshold: 150 });
    const withoutJob = await probe('--set', 'migration.enabled=false');
    expect(withoutJob).toMatchObject({ periodSeconds: 2, failureThreshold: 1800 });
  });

  test('in the example only proxies can reach what trusts their headers', async () => {
    const objects = await example();
    for (const [kind, name] of [
      ['StatefulSet', 'gateway'],
      ['Deployment', 'dashboard'],
    ] as const) {
      const { env } = named(objects, kind, name).spec.template.spec.containers[0];
      expect(env).toContainEqual({ name: 'TRUST_PROXY', value: '10.0.12.0/24' });
      const rules: { from?: unknown; ports: unknown }[] = named(objects, 'NetworkPolicy', name).spec.ingress;
      const proxies = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'proxies' } } };
      expect(rules).toContainEqual({ from: [proxies], ports: [{ port: 'http' }] });
      expect(named(objects, 'Service', name).spec.type).toBe('ClusterIP');
    }
  });

  test('wrong values are refused with a sentence, and large numbers keep their digits', async () => {
    await expect(template(latest)).rejects.toThrow("at '/publicUrl'");
    const given = ['--values', EXAMPLE];
    await expect(template(latest, ...given, '--set', 'gatway.replicas=3')).rejects.toThrow("'gatway' not allowed");
    await expect(template(latest, ...given, '--set', 'core.replicas=0')).rejects.toThrow("at '/core/replicas'");
    const file = join(BUILD, 'values.yaml');
    await writeFile(file, 'gateway: { env: { MAX_CONNECTIONS: 1000000 } }\n');
    const objects = await decode(latest, await template(latest, ...given, '--values', file));
    const { env } = named(objects, 'StatefulSet', 'gateway').spec.template.spec.containers[0];
    expect(env).toContainEqual({ name: 'MAX_CONNECTIONS', value: '1000000' });
  });

  test('archives of scans in files need a volume that outlives the pods', async () => {
    const claim = 'archive.existingClaim=archives';
    for (const component of ['core', 'worker']) {
      const values = ['--values', EXAMPLE, '--set', `${component}.env.SCANS_ARCHIVE=file`];
      await expect(template(latest, ...values)).rejects.toThrow(`in ${component}.env needs archive.existingClaim`);
      const objects = await decode(latest, await template(latest, ...values, '--set', claim));
      for (const name of ['core', 'worker']) {
        expect(named(objects, 'Deployment', name).spec.template.spec.volumes).toContainEqual({
          name: 'data',
          persistentVolumeClaim: { claimName: 'archives' },
        });
      }
    }
  });

  test('gateways can stay at the previous image for a while', async () => {
    const objects = await decode(latest, await template(latest, '--values', EXAMPLE, '--set', 'gateway.tag=0.9.0'));
    const image = (kind: string, name: string) => named(objects, kind, name).spec.template.spec.containers[0].image;
    expect(image('StatefulSet', 'gateway')).toBe('registry.example/signpost:0.9.0');
    expect(image('Deployment', 'core')).toBe('registry.example/signpost:1.0.0');
  });

  test('the version is the one of the project', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8'));
    expect(await readFile(join(CHART, 'Chart.yaml'), 'utf8')).toContain(`appVersion: "${version}"`);
  });
});
