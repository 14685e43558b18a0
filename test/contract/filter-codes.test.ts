import { describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import {
  CodeOrder,
  CodeState,
  CodesService,
  CodeType,
  type ListCodesResponse,
} from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { contract } from './client.ts';
import { internal } from './internal.ts';

const api = contract();

async function account() {
  const { id } = await api.account();
  const codes = internal(api.signpost, CodesService, id);
  const create = async (name: string, targetUrl = 'https://example.com/', labels = {}) => {
    const { code } = await codes.createCode({ name, targetUrl, ...labels });
    if (!code) throw new Error('no code was created');
    return code;
  };
  const names = async (request: Parameters<typeof codes.listCodes>[0]) => namesOf(await codes.listCodes(request));
  return { codes, create, names };
}

const namesOf = ({ codes, total }: ListCodesResponse) => {
  expect(Number(total)).toBe(codes.length);
  return codes.map(({ name }) => name);
};

describe('ListCodes with `search`', () => {
  test('finds part of a name or target URL in any case, and the beginning of a short code', async () => {
    const { create, names } = await account();
    const menu = await create('Speisekarte MÜNCHEN', 'https://example.com/a');
    await create('100% off_x', 'https://example.com/Menu');
    for (const search of ['münchen', 'KARTE', '  karte m ']) {
      expect(await names({ search })).toEqual([menu.name]);
    }
    expect(await names({ search: 'mENU' })).toEqual(['100% off_x']);
    expect(await names({ search: '0% off_' })).toEqual(['100% off_x']);
    expect(await names({ search: '%' })).toEqual(['100% off_x']);
    expect(await names({ search: 'example.com' })).toEqual(['100% off_x', menu.name]);
    expect(await names({ search: menu.shortCode.slice(0, 6).toLowerCase() })).toEqual([menu.name]);
    expect(await names({ search: menu.shortCode.slice(1) })).toEqual([]);
    expect(await names({ search: ' ' })).toEqual(['100% off_x', menu.name]);
  });

  test.each([
    ['ΟΔΟΣ', 'οδος'],
    ['Hauptstraße', 'STRASSE'],
    ['HAUPTSTRASSE', 'straße'],
    ['Cafe\u0301 am Eck', 'CAF\u00c9 am'],
    ['Caf\u00e9 am Eck', 'cafe\u0301 am'],
  ])('finds %s as %s, which are one name of a folder too', async (name, search) => {
    const { create, names } = await account();
    await create(name);
    expect(await names({ search })).toEqual([name]);
  });

  test('finds only the code whose id or complete short code it is, among the account’s own codes', async () => {
    const [{ create, names }, other] = [await account(), await account()];
    const code = await create('one');
    await create(`like ${code.shortCode} and ${code.id}`);
    for (const search of [code.id, code.shortCode]) {
      expect(await names({ search })).toEqual(['one']);
      expect(await other.names({ search })).toEqual([]);
      expect(await names({ search, state: CodeState.PAUSED })).toEqual([]);
    }
  });

  test('finds codes without a name or a target, and combines with folders, tags and pages', async () => {
    const { codes, create, names } = await account();
    await codes.createStaticCode({ content: { case: 'payload', value: 'x' } });
    await codes.createStaticCode({ name: 'a-static', content: { case: 'payload', value: 'x' } });
    await create('a-1', undefined, { folder: 'Berlin', tags: ['menu'] });
    await create('a-2', undefined, { folder: 'Berlin' });
    await create('a-3', undefined, { tags: ['menu'] });
    expect(await names({ search: 'a-s' })).toEqual(['a-static']);
    expect(await names({ search: 'a-', folder: 'berlin' })).toEqual(['a-2', 'a-1']);
    expect(await names({ search: 'a-', tags: ['menu'] })).toEqual(['a-3', 'a-1']);
    expect(await names({ search: 'a-', folder: 'none', tags: ['menu'] })).toEqual(['a-3']);
    const first = await codes.listCodes({ search: 'a-', limit: 2 });
    expect([first.codes.map(({ name }) => name), first.total, first.totalIsLowerBound]).toEqual([
      ['a-3', 'a-2'],
      4n,
      false,
    ]);
    expect(await names({ search: 'a-', cursor: first.nextCursor ?? '' })).toEqual(['a-1', 'a-static']);
    const skipped = await codes.listCodes({ search: 'a-', offset: 3 });
    expect([skipped.codes.map(({ name }) => name), skipped.nextCursor]).toEqual([['a-static'], undefined]);
  });

  test('rejects NUL and more than 200 characters', async () => {
    const { codes } = await account();
    for (const search of ['a\0b', 'a'.repeat(201)]) {
      const error = await codes.listCodes({ search }).catch(readFailure);
      expect(error).toMatchObject({ reason: 'INVALID_FIELD' });
    }
  });
});

test('ListCodes filters by state, where deleted codes say since when, and by type', async () => {
  const { codes, create, names } = await account();
  const active = await create('active');
  const paused = await create('paused');
  const deleted = await create('deleted');
  await codes.updateCode({ id: paused.id, updateMask: { paths: ['paused'] }, paused: true });
  await codes.deleteCode({ id: deleted.id });
  await codes.createStaticCode({ name: 'static', content: { case: 'payload', value: 'x' } });
  await codes.createLandingPageCode({ name: 'page', landingPage: { title: 'x' } });

  expect(await names({})).toEqual(['page', 'static', 'paused', 'active']);
  expect(await names({ state: CodeState.ACTIVE })).toEqual(['page', 'static', 'active']);
  expect(await names({ state: CodeState.PAUSED })).toEqual(['paused']);
  const gone = await codes.listCodes({ state: CodeState.DELETED });
  expect(namesOf(gone)).toEqual(['deleted']);
  expect(gone.codes[0]?.deletedAt).toEqual(gone.codes[0]?.updatedAt);
  expect((await codes.getCode({ id: active.id })).code?.deletedAt).toBeUndefined();
  expect(await names({ type: CodeType.STATIC })).toEqual(['static']);
  expect(await names({ type: CodeType.LANDING_PAGE })).toEqual(['page']);
  expect(await names({ type: CodeType.DYNAMIC })).toEqual(['paused', 'active']);
  expect(await names({ type: CodeType.DYNAMIC, state: CodeState.ACTIVE })).toEqual(['active']);
  expect(await names({ type: CodeType.STATIC, state: CodeState.PAUSED })).toEqual([]);
  expect(await names({ type: CodeType.DYNAMIC, state: CodeState.DELETED, search: 'DEL' })).toEqual(['deleted']);
  expect(await names({ type: CodeType.STATIC, state: CodeState.DELETED })).toEqual([]);
  await codes.restoreCode({ id: deleted.id });
  expect(await names({ state: CodeState.DELETED })).toEqual([]);
});

test('ListCodes lists the oldest codes first on request, with cursors and offsets', async () => {
  const { codes, create } = await account();
  for (const name of ['1', '2', '3', '4', '5']) await create(name);
  const list = async (request: Parameters<typeof codes.listCodes>[0]) => {
    const page = await codes.listCodes({ order: CodeOrder.OLDEST, limit: 2, ...request });
    return { names: page.codes.map(({ name }) => name), total: Number(page.total), cursor: page.nextCursor ?? '' };
  };
  const first = await list({});
  expect(first).toMatchObject({ names: ['1', '2'], total: 5 });
  expect(await list({ cursor: first.cursor })).toMatchObject({ names: ['3', '4'], total: 3 });
  expect(await list({ offset: 4 })).toEqual({ names: ['5'], total: 5, cursor: '' });
  expect(await list({ offset: 9 })).toEqual({ names: [], total: 5, cursor: '' });
  const found = await list({ search: 'example' });
  expect(found).toMatchObject({ names: ['1', '2'], total: 5 });
  expect(await list({ search: 'example', cursor: found.cursor })).toMatchObject({ names: ['3', '4'], total: 3 });
});
