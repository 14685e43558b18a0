/**
 * Makes the kernel ignore attempts to open a connection to a listening socket, while handshakes that have begun still
 * complete: a socket filter drops every segment with the SYN flag. Clients retry after a second. Without this, a
 * connection that arrives between the last accept and the closing of the socket would be reset.
 *
 * Node can't set socket options, so this calls `setsockopt` by `node:ffi`, which is experimental. Returns false where
 * that isn't possible: on other systems than 64-bit Linux, and in versions of Node without `node:ffi`.
 */
export function ignoreNewConnections(descriptor: number): boolean {
  const ffi = process.getBuiltinModule('node:ffi');
  if (!ffi || process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) return false;
  try {
    using libc = ffi.dlopen(null, {
      setsockopt: { arguments: ['i32', 'i32', 'i32', 'pointer', 'u32'], return: 'i32' },
    });
    // struct sock_fprog: the number of instructions, padded to eight bytes, and their address.
    const program = Buffer.alloc(16);
    program.writeUInt16LE(DROP_SYN.length / INSTRUCTION_BYTES, 0);
    program.writeBigUInt64LE(ffi.getRawPointer(DROP_SYN), 8);
    return libc.functions.setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, program, program.length) === 0;
  } catch {
    return false;
  }
}

/** From `asm-generic/socket.h` of Linux. */
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;

/** A program for the classic Berkeley Packet Filter (`linux/filter.h`); it sees segments from their TCP header on. */
const INSTRUCTION_BYTES = 8;
const DROP_SYN = Buffer.concat([
  // Load the byte of flags (RFC 9293, section 3.1).
  instruction(0x30, 0, 0, 13),
  // Continue with the next instruction if SYN is set, otherwise skip it.
  instruction(0x45, 0, 1, 0x02),
  // Keep none of the segment, or all.
  instruction(0x06, 0, 0, 0),
  instruction(0x06, 0, 0, 0xffff_ffff),
]);

function instruction(code: number, ifTrue: number, ifFalse: number, operand: number): Buffer {
  const bytes = Buffer.alloc(INSTRUCTION_BYTES);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifTrue, 2);
  bytes.writeUInt8(ifFalse, 3);
  bytes.writeUInt32LE(operand, 4);
  return bytes;
}
