/**
 * Follows this node's own object in the API server, and tells what others have decided about the node: the
 * range of pod addresses, addresses, cordons, taints and labels. One watch, of one object, as the Node authorizer allows.
 */
import type { Reflector, ReflectorOptions } from '../client/api-client.ts';
import { hostIps } from './node-addresses.ts';
import type { Node } from './node-types.ts';
import { isSamePlacement, type NodePlacement, type OwnNode, placementOf, podCidrsOf } from './own-node.ts';

export interface NodeWatchOptions {
  readonly nodeName: string;
  readonly own: OwnNode;
  readonly createReflector: (options: ReflectorOptions<Node>) => Pick<Reflector<Node>, 'run'>;
  /** Each version of the object, the present one first. */
  readonly onNode?: (node: Node) => void;
  /** The pod CIDRs, once there are any and when they change: for the runtime's `UpdateRuntimeConfig`. */
  readonly onPodCidrs?: (cidrs: readonly string[]) => void;
  /** Labels, taints and cordon, once known and when they change: for admission. */
  readonly onPlacement?: (placement: NodePlacement) => void;
  /** The addresses that pods show as their host's, once known and when they change. */
  readonly onHostIps?: (ips: readonly string[]) => void;
}

export class NodeWatch {
  readonly #options: NodeWatchOptions;

  constructor(options: NodeWatchOptions) {
    this.#options = options;
  }

  /** Follows until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { nodeName, own, createReflector } = this.#options;
    const stopListening = own.onChange((after, before) => this.#tell(after, before));
    if (own.current) this.#tell(own.current, undefined);
    const reflector = createReflector({
      path: '/api/v1/nodes',
      query: { fieldSelector: `metadata.name=${nodeName}` },
      onChange: ({ set, removed }) => {
        for (const node of removed) own.gone(node.metadata.uid);
        for (const node of set) if (node.metadata.name === nodeName) own.set(node);
      },
    });
    try {
      await reflector.run(signal);
    } finally {
      stopListening();
    }
  }

  #tell(after: Node | undefined, before: Node | undefined): void {
    if (after === undefined) return;
    const { onNode, onPodCidrs, onPlacement, onHostIps } = this.#options;
    onNode?.(after);
    const cidrs = podCidrsOf(after);
    if (cidrs.length > 0 && cidrs.join() !== podCidrsOf(before).join()) onPodCidrs?.(cidrs);
    const placement = placementOf(after);
    if (before === undefined || !isSamePlacement(placement, placementOf(before))) onPlacement?.(placement);
    const ips = hostIps(after.status?.addresses ?? []);
    if (ips.join() !== hostIps(before?.status?.addresses ?? []).join()) onHostIps?.(ips);
  }
}
