/**
 * Clients that nobody misses, in a process of their own: `node many-clients.ts PORT`. Opens hundreds of
 * connections of each kind, tells its parent when they stand, and lets go of them when it is told to.
 */
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

const port = Number(process.argv[2]);
const sockets = new Set<Socket>();
const keep = <S extends Socket>(socket: S): S => {
  sockets.add(socket);
  socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  return socket;
};

/** Many at once would only queue for the one processor both sides share. */
async function inTens(count: number, open: () => Promise<void>): Promise<void> {
  for (let n = 0; n < count; n += 10) await Promise.all(Array.from({ length: 10 }, open));
}

const tls = (then: (socket: Socket) => void) => () =>
  new Promise<void>((resolve) => {
    const socket = keep(
      connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] }),
    );
    socket.once('close', resolve);
    socket.once('secureConnect', () => {
      then(socket);
      resolve();
    });
  });

const idle = tls((socket) => void socket.resume());
/** Headers that never end. */
const dripping = tls((socket) => {
  socket.resume();
  socket.write('GET /pods HTTP/1.1\r\nhost: x\r\n');
  const drip = setInterval(() => socket.write('x: y\r\n'), 200);
  socket.once('close', () => clearInterval(drip));
});
/** Wants a lot and reads nothing of it. */
const notReading = tls((socket) => {
  socket.pause();
  socket.write('GET /large HTTP/1.1\r\nhost: x\r\n\r\n');
});
/** Says hello in TCP and nothing more. */
const silent = () =>
  new Promise<void>((resolve) => {
    const socket = keep(connectTcp(port, '127.0.0.1'));
    socket.once('close', resolve).once('connect', () => resolve());
  });

process.on('message', (message) => {
  if (message === 'leave') for (const socket of sockets) socket.destroy();
  process.disconnect();
});
await inTens(800, idle);
await inTens(100, dripping);
await inTens(100, notReading);
await inTens(200, silent);
process.send?.('there');
