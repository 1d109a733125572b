/**
 * Preloaded by every Node.js inside the virtual machine. The project's sources on its disk have lost their types
 * already (see project-image.ts); this tells Node.js so, which saves it a second or more per process under
 * emulation. A process started without it strips them again and finds nothing to remove.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const project = pathToFileURL(`${process.env.KUBELET_VM_PROJECT}/`).href;

registerHooks({
  load(url, context, nextLoad) {
    const ours = url.startsWith(project) && url.endsWith('.ts');
    if (!ours) return nextLoad(url, context);
    return { format: 'module', source: readFileSync(new URL(url), 'utf8'), shortCircuit: true };
  },
});
