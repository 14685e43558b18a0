import { createValidateInterceptor } from '@connectrpc/validate';

/** Enforces the constraints of the proto files on every request, for both servers. Compiled once, when first met. */
export const validate = createValidateInterceptor();
