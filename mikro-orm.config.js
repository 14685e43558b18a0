import { ormOptions } from './src/db/database.ts';
import { entities } from './src/entities.ts';

/**
 * For MikroORM's command line: `DATABASE_URL=… npx mikro-orm migration:check`. It looks for TypeScript only where one of
 * its loaders is installed; Node needs none.
 */
export default ormOptions(process.env.DATABASE_URL ?? '', entities);
