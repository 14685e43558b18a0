import { ormOptions } from './src/db/database.ts';
import { entities } from './src/entities.ts';

/**
 * For MikroORM's command line: `DATABASE_URL=… npx mikro-orm migration:check`. It is JavaScript because MikroORM reads
 * a configuration in TypeScript only if a loader is installed, which Node does not need.
 */
export default ormOptions(process.env.DATABASE_URL ?? '', entities);
