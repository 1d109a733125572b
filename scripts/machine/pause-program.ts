/**
 * The sandbox's first process: a static program of a few hundred bytes that holds the pod's namespaces,
 * reaps what is orphaned there, and exits 0 on TERM or INT.
 *
 * It is put together here because a fresh machine has no compiler, and because a shell or busybox in its
 * place would cost every pod some hundred KiB and never reap. The same program in words:
 *
 *     block CHLD, TERM, INT
 *     forever: signal = wait for one of them
 *       CHLD → wait4(any, no hang) until nothing is left
 *       error (interrupted) → again
 *       TERM or INT → exit 0
 */

/** Linux machines the program exists for, by Node's name of the architecture. */
export type PauseArchitecture = 'x64' | 'arm64';

interface MachineCode {
  /** `e_machine` of the ELF header. */
  machine: number;
  /** Position-independent code; its last eight bytes are the signal set. */
  code: string;
}

const machines: Record<PauseArchitecture, MachineCode> = {
  x64: {
    machine: 62,
    code: [
      '488d3559000000', //       lea  rsi, [set]
      '31ff31d241ba08000000', // edi = 0 (SIG_BLOCK), edx = 0, r10d = 8
      'b80e0000000f05', //       rt_sigprocmask
      '488d3d41000000', // wait: lea  rdi, [set]
      '31f631d241ba08000000', // esi = 0, edx = 0, r10d = 8
      'b8800000000f05', //       rt_sigtimedwait
      '83f811740d', //           SIGCHLD (17) → reap
      '85c078df', //             negative → wait
      '31ffb8e70000000f05', //   exit_group(0)
      'bfffffffff31f6', // reap: edi = -1, esi = 0
      'ba010000004531d2', //     edx = WNOHANG, r10d = 0
      'b83d0000000f05', //       wait4
      '85c07fe6ebba6690', //     positive → reap, else → wait; padding
      '0240010000000000', //  set: SIGINT | SIGTERM | SIGCHLD
    ].join(''),
  },
  arm64: {
    machine: 183,
    code: [
      '000080d261030010020080d2030180d2', //       x0 = SIG_BLOCK, x1 = set, x2 = 0, x3 = 8
      'e81080d2010000d4', //                       rt_sigprocmask
      'c0020010010080d2020080d2030180d2', // wait: x0 = set, x1 = 0, x2 = 0, x3 = 8
      '281180d2010000d4', //                       rt_sigtimedwait
      '1f440071a0000054', //                       SIGCHLD (17) → reap
      '00ffff37', //                               negative → wait
      '000080d2c80b80d2010000d4', //               exit_group(0)
      '00008092010080d2220080d2030080d2', // reap: x0 = -1, x1 = 0, x2 = WNOHANG, x3 = 0
      '882080d2010000d4', //                       wait4
      '1f0000712cffff54ecffff171f2003d5', //       positive → reap, else → wait; padding
      '0240010000000000', //                  set: SIGINT | SIGTERM | SIGCHLD
    ].join(''),
  },
};

const headerBytes = 64;
const programHeaderBytes = 56;
const loadAddress = 0x400000n;
/** arm64 kernels may have pages of 64 KiB. */
const largestPage = 0x10000n;

/** The program as an ELF executable for the architecture; the bytes never vary. */
export function pauseProgram(architecture: PauseArchitecture): Buffer {
  const { machine, code } = machines[architecture];
  const text = Buffer.from(code, 'hex');
  const start = headerBytes + programHeaderBytes;
  const file = Buffer.alloc(start + text.length);

  file.write('\x7fELF', 0, 'latin1');
  file.set([2, 1, 1], 4); // 64 bit, little endian, version 1
  file.writeUInt16LE(2, 16); // ET_EXEC
  file.writeUInt16LE(machine, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(loadAddress + BigInt(start), 24); // entry point
  file.writeBigUInt64LE(BigInt(headerBytes), 32); // program headers begin here
  file.writeUInt16LE(headerBytes, 52);
  file.writeUInt16LE(programHeaderBytes, 54);
  file.writeUInt16LE(1, 56); // one program header

  file.writeUInt32LE(1, headerBytes); // PT_LOAD
  file.writeUInt32LE(5, headerBytes + 4); // readable, executable
  file.writeBigUInt64LE(loadAddress, headerBytes + 16);
  file.writeBigUInt64LE(loadAddress, headerBytes + 24);
  file.writeBigUInt64LE(BigInt(file.length), headerBytes + 32);
  file.writeBigUInt64LE(BigInt(file.length), headerBytes + 40);
  file.writeBigUInt64LE(largestPage, headerBytes + 48);

  file.set(text, start);
  return file;
}
