/**
 * What the bench prints, row by row, with the figures to beat. The Go kubelet's are of release 1.36.2 on a
 * machine of 2 cores with containerd 2.1.9 and a real API server; the targets are the project's own.
 */

type Range = readonly [low: number, high: number];

export interface Row {
  readonly work: string;
  readonly unit: 's' | 'MiB' | 'MB/s' | '%' | '';
  /** The Go kubelet: one number or from–to. */
  readonly go?: { readonly typical: Range; readonly p90?: Range; readonly timesFloor?: Range };
  /** At most this many times the floor, or at most this in the row's unit. */
  readonly target?:
    | { readonly timesFloor: number; readonly p90TimesFloor?: number }
    | { readonly most: number };
}

export const rows = {
  oneRunning: {
    work: '1 pod: manifest written → container running',
    unit: 's',
    go: { typical: [0.652, 0.721], p90: [0.754, 0.813], timesFloor: [2.6, 2.8] },
    target: { timesFloor: 1.25, p90TimesFloor: 1.6 },
  },
  oneKnown: {
    work: '1 pod: manifest written → known to run',
    unit: 's',
    go: { typical: [0.652, 0.721], p90: [0.754, 0.813], timesFloor: [2.6, 2.8] },
    target: { timesFloor: 1.25, p90TimesFloor: 1.6 },
  },
  oneGone: {
    work: '1 pod: manifest removed → gone',
    unit: 's',
    go: { typical: [0.81, 0.88], p90: [1.18, 1.25], timesFloor: [2.9, 2.9] },
    target: { timesFloor: 1.2 },
  },
  thirtyRunning: {
    work: '30 pods at once: all running',
    unit: 's',
    go: { typical: [7.9, 10.7], timesFloor: [1.6, 2.1] },
    target: { timesFloor: 1.1 },
  },
  thirtyGone: { work: '30 pods: all gone', unit: 's' },
  hundredRunning: {
    work: '100 pods at once: all running',
    unit: 's',
    go: { typical: [30, 35], timesFloor: [1.5, 1.7] },
    target: { timesFloor: 1.1 },
  },
  hundredGone: {
    work: '100 pods: all gone',
    unit: 's',
    go: { typical: [22, 29], timesFloor: [1.2, 1.5] },
    target: { timesFloor: 1.1 },
  },
  startHealthy: {
    work: 'process start → /healthz',
    unit: 's',
    go: { typical: [0.38, 0.38] },
    target: { most: 0.3 },
  },
  startPod: { work: 'process start → running pod adopted', unit: 's' },
  restartAdopted: {
    work: 'restart with 30 pods → all adopted',
    unit: 's',
    go: { typical: [0.9, 1.06] },
    target: { most: 0.5 },
  },
  restartRestarted: {
    work: '— containers replaced by it',
    unit: '',
    go: { typical: [0, 0] },
    target: { most: 0 },
  },
  memory0: {
    work: 'memory (RSS), 0 pods',
    unit: 'MiB',
    go: { typical: [82, 82] },
    target: { most: 80 },
  },
  memory30: { work: '— 30 pods', unit: 'MiB', go: { typical: [98, 98] }, target: { most: 95 } },
  memory100: { work: '— 100 pods', unit: 'MiB', go: { typical: [124, 127] }, target: { most: 125 } },
  idle0: {
    work: 'CPU of one core when idle, 0 pods',
    unit: '%',
    go: { typical: [1, 1] },
    target: { most: 0.3 },
  },
  idle30: { work: '— 30 pods', unit: '%', go: { typical: [3.3, 3.7] }, target: { most: 0.8 } },
  idle100: { work: '— 100 pods', unit: '%', go: { typical: [9.2, 9.2] }, target: { most: 2 } },
  cpuStart: {
    work: 'agent CPU to start 100 pods',
    unit: 's',
    go: { typical: [6.5, 9.8] },
    target: { most: 4 },
  },
  cpuEnd: {
    work: 'agent CPU to remove 100 pods',
    unit: 's',
    go: { typical: [4.9, 6.4] },
    target: { most: 3 },
  },
  summaryTime: { work: '/stats/summary with 100 pods', unit: 's' },
  summaryCpu: { work: '— agent CPU for it', unit: 's' },
  cadvisorTime: { work: '/metrics/cadvisor with 100 pods', unit: 's' },
  cadvisorCpu: { work: '— agent CPU for it', unit: 's' },
  clusterReady: {
    work: 'process start → node Ready in the cluster',
    unit: 's',
    target: { most: 0.5 },
  },
  clusterStart: {
    work: 'requests to the API server at start',
    unit: '',
    go: { typical: [39, 39] },
    target: { most: 25 },
  },
  clusterPod: {
    work: '— for one pod: created → ready → deleted',
    unit: '',
    go: { typical: [22.4, 22.4] },
    target: { most: 11 },
  },
  clusterIdle: {
    work: '— in a minute when idle, 1 pod',
    unit: '',
    go: { typical: [6, 6] },
    target: { most: 6 },
  },
  execRound: {
    work: 'command in a container, asked for → its status',
    unit: 's',
    target: { timesFloor: 1.5 },
  },
  execRate: { work: '— output of a command', unit: 'MB/s' },
  logRate: { work: 'log of 256 MB read by a client', unit: 'MB/s' },
  logTail: { work: '— its last 100 lines', unit: 's' },
  logFollow: { work: 'line written → at the client that follows', unit: 's' },
} as const satisfies Record<string, Row>;

export type RowId = keyof typeof rows;
