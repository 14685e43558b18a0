import { connectCore } from '../cli/core.ts';
import { reportFatalError } from '../common/runtime/fatal-errors.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { GATEWAY_VARIABLES } from '../gateway/config.ts';
import { session } from '../local/session.ts';
import { Plan } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';

/**
 * Creates the first account, and prints its key and a session to copy and paste. Does nothing if there is an account.
 * Reads the variables of the command line (`CORE_HOST`, `SERVICE_TOKEN`) and `PUBLIC_URL`. This is the only program in
 * a container that prints a secret, and it does so on standard output.
 */
try {
  const { PUBLIC_URL: url } = readVariables({ PUBLIC_URL: GATEWAY_VARIABLES.PUBLIC_URL }, process.env);
  const { accounts } = await connectCore(process.env);
  const { total } = await accounts.listAccounts({ limit: 1 });
  if (total > 0n) {
    console.log(
      'Signpost is running. Accounts exist; `signpost account create` in the container of a core adds another.',
    );
  } else {
    const { apiKey } = await accounts.createAccount({ name: 'First account', plan: Plan.BUSINESS });
    console.log(`
Signpost is running.

  REST API and scans   ${url}
  API reference        ${url}/docs
  API key              ${apiKey}

${session(url, apiKey)}`);
  }
} catch (error) {
  reportFatalError(error);
}
