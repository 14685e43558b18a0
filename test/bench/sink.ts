/** A bare server that turns everything down, for `hostile.ts`: what an attack takes of the machine wherever it goes. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer((_request, response) => void response.writeHead(400, { 'content-length': 0 }).end());
server.on('connect', (_request, socket) => void socket.on('error', () => undefined).end());
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit());
