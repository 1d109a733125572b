/** The certificate that the cluster signs for this node's addresses, for whoever serves with it. */
import { resolve } from 'node:path';
import { CertificateStore } from '../../credentials/certificate-store.ts';
import {
  ServingCertificate,
  type ServingCertificateOptions,
  type ServingPair,
} from '../../credentials/serving-certificate.ts';
import type { Node } from '../../node/node-types.ts';
import type { SignedServingCertificate } from './membership.ts';

export interface ServingCertificateKeeperOptions
  extends Omit<ServingCertificateOptions, 'store' | 'onChange'> {
  /** `--cert-dir` */
  readonly directory: string;
}

export class ServingCertificateKeeper implements SignedServingCertificate {
  readonly #certificate: ServingCertificate;
  readonly #listeners = new Set<(pair: ServingPair) => void>();

  constructor(options: ServingCertificateKeeperOptions) {
    const { clock } = options;
    this.#certificate = new ServingCertificate({
      ...options,
      store: new CertificateStore({ directory: resolve(options.directory), name: 'kubelet-server', clock }),
      onChange: (pair) => {
        for (const listener of this.#listeners) listener(pair);
      },
    });
  }

  current(): ServingPair | undefined {
    return this.#certificate.current();
  }

  onChange(listener: (pair: ServingPair) => void): void {
    this.#listeners.add(listener);
  }

  /** Takes the addresses that the node reports: a certificate is asked for when they are others. */
  nodeChanged({ status }: Node): void {
    this.#certificate.setAddresses(status?.addresses ?? []);
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#certificate.run(signal);
  }
}
