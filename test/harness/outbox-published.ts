import type { Pool } from 'pg';

/** Waits until the outbox has been published, so that the work of one round does not slow down the next. */
export async function outboxPublished(pool: Pool): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ waiting: boolean }>('select exists (select from outbox_waiting) as waiting');
    if (!rows[0]?.waiting) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
