import type { Interceptor } from '@connectrpc/connect';
import { createValidateInterceptor } from '@connectrpc/validate';
import { requirementsOf } from '../access/requirements.ts';
import { validator } from '../calls/validator.ts';

/**
 * Enforces the constraints of the proto files on every request, for both servers. Methods with idempotency keys enforce
 * them themselves, after checking the key: see `once`.
 */
export const validate: Interceptor = (next) => {
  const validated = createValidateInterceptor({ validator })(next);
  return (request) => (requirementsOf(request.method).remembered ? next(request) : validated(request));
};
