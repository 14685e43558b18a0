import type { Pool } from 'pg';

/** Waits until the log has everything, so that one round's work is not paid for in the next. */
export async function settled(pool: Pool): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ waiting: boolean }>('select exists (select from outbox_waiting) as waiting');
    if (!rows[0]?.waiting) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
