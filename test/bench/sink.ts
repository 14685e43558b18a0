/** A bare server that rejects every request, for `hostile.ts`: it shows what an attack itself costs the machine. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer((_request, response) => void response.writeHead(400, { 'content-length': 0 }).end());
server.on('connect', (_request, socket) => void socket.on('error', () => undefined).end());
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit());
