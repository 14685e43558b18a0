/** Loaded by `node --import`: makes a program fail that loads a package of OpenTelemetry's SDK. */
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    if (/^@opentelemetry\/(?!api$)/.test(specifier)) throw new Error(`${specifier} was loaded`);
    return next(specifier, context);
  },
});
