import type { EntitySchema } from '@mikro-orm/core';

/** Every entity of the rooms. */
export const entities: EntitySchema[] = [];
