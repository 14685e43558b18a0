import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  parseSearchWith,
} from '@tanstack/react-router';
import { NotFound, PageFailed } from './components/shell/failures.tsx';
import { Shell } from './components/shell/shell.tsx';
import { language } from './data/preferences.ts';
import { queryClient } from './data/queries.ts';
import { sessionQuery } from './data/session.ts';
import { loadMessages } from './messages/index.ts';
import { validateCodesSearch } from './routes/codes/search.ts';
import { validateOverviewSearch } from './routes/overview/search.ts';

const rootRoute = createRootRoute({
  // At the same time as the page, which would ask for its texts only when it has been loaded.
  beforeLoad({ location }) {
    if (location.pathname !== '/') void loadMessages(language()).catch(() => undefined);
  },
  loader: () => queryClient.ensureQueryData(sessionQuery),
  component: Shell,
  notFoundComponent: NotFound,
  errorComponent: PageFailed,
});

/** The pages; each is loaded when it is first opened. */
const routes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/',
    validateSearch: validateOverviewSearch,
    component: lazyRouteComponent(() => import('./routes/overview/overview.tsx'), 'Overview'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/codes',
    validateSearch: validateCodesSearch,
    component: lazyRouteComponent(() => import('./routes/codes/codes.tsx'), 'Codes'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/codes/new',
    component: lazyRouteComponent(() => import('./routes/new-code/new-code.tsx'), 'NewCode'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/codes/$codeId',
    component: lazyRouteComponent(() => import('./routes/code/code.tsx'), 'CodePage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/batches',
    component: lazyRouteComponent(() => import('./routes/batches/batches.tsx'), 'Batches'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/batches/new',
    component: lazyRouteComponent(() => import('./routes/batches/new-batch.tsx'), 'NewBatch'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/batches/$batchId',
    component: lazyRouteComponent(() => import('./routes/batches/batch.tsx'), 'BatchPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/folders-and-tags',
    component: lazyRouteComponent(() => import('./routes/labels/labels.tsx'), 'Labels'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/domains',
    component: lazyRouteComponent(() => import('./routes/domains/domains.tsx'), 'Domains'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/webhooks',
    component: lazyRouteComponent(() => import('./routes/webhooks/webhooks.tsx'), 'Webhooks'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/webhooks/$endpointId',
    component: lazyRouteComponent(() => import('./routes/webhooks/endpoint.tsx'), 'EndpointPage'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/api',
    component: lazyRouteComponent(() => import('./routes/api/api.tsx'), 'Api'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/team',
    component: lazyRouteComponent(() => import('./routes/team/team.tsx'), 'Team'),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: '/audit-log',
    component: lazyRouteComponent(() => import('./routes/audit/audit.tsx'), 'Audit'),
  }),
] as const;

/**
 * Reads a value of an address: a list or a text. What looks like another value in JSON is a text too, such as `1e3`.
 */
function readSearchValue(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return typeof value === 'string' || Array.isArray(value) ? value : text;
}

export const router = createRouter({
  routeTree: rootRoute.addChildren(routes),
  parseSearch: parseSearchWith(readSearchValue),
  defaultPreload: 'intent',
  defaultErrorComponent: PageFailed,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
