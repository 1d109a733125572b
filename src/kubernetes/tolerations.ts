/** Whether a pod puts up with a node's taint. Pure. */
import type { Toleration } from './types.ts';

export interface NodeTaint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: string;
}

/**
 * True when one of the tolerations covers the taint. `Gt` and `Lt` compare whole numbers, where the gate
 * TaintTolerationComparisonOperators lets them (`comparisons`).
 */
export function tolerates(
  tolerations: readonly Toleration[] | undefined,
  taint: NodeTaint,
  { comparisons = false }: { readonly comparisons?: boolean } = {},
): boolean {
  return (tolerations ?? []).some(({ key, operator, value, effect }) => {
    if (effect && effect !== taint.effect) return false;
    if (key && key !== taint.key) return false;
    switch (operator || 'Equal') {
      case 'Exists':
        return true;
      case 'Equal':
        return Boolean(key) && (value ?? '') === (taint.value ?? '');
      case 'Gt':
        return comparisons && compares(taint.value, value, (a, b) => a > b);
      case 'Lt':
        return comparisons && compares(taint.value, value, (a, b) => a < b);
      default:
        return false;
    }
  });
}

function compares(
  taint: string | undefined,
  toleration: string | undefined,
  order: (a: bigint, b: bigint) => boolean,
): boolean {
  const isNumber = (text: string | undefined) => text !== undefined && /^-?\d+$/.test(text);
  return isNumber(taint) && isNumber(toleration) && order(BigInt(taint!), BigInt(toleration!));
}
