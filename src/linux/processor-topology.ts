/** How many processors a machine really has, from `/proc/cpuinfo`. Pure. */
export interface ProcessorTopology {
  readonly logical: number;
  readonly cores: number;
  readonly sockets: number;
}

/** Machines that do not tell cores and sockets, such as arm64, have one core for each processor. */
export function parseProcessorTopology(text: string): ProcessorTopology {
  const processors = text.split(/\n\s*\n/).filter((block) => /^processor\s*:/m.test(block));
  const sockets = new Set<string>();
  const cores = new Set<string>();
  for (const [index, block] of processors.entries()) {
    const socket = /^physical id\s*:\s*(\d+)/m.exec(block)?.[1] ?? '0';
    const core = /^core id\s*:\s*(\d+)/m.exec(block)?.[1] ?? `unknown ${index}`;
    sockets.add(socket);
    cores.add(`${socket}/${core}`);
  }
  return { logical: processors.length, cores: cores.size, sockets: sockets.size };
}
