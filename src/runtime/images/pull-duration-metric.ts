/**
 * `kubelet_image_pull_duration_seconds`: how long pulls took, by the size of the image.
 */
import type { Metrics } from '../../telemetry/metrics.ts';

const mebi = 2 ** 20;
const gibi = 2 ** 30;
/** Lower bounds, largest first. */
const sizeClasses: readonly (readonly [bytes: number, label: string])[] = [
  [100 * gibi, 'GT100GB'],
  [60 * gibi, '60GB-100GB'],
  [40 * gibi, '40GB-60GB'],
  [30 * gibi, '30GB-40GB'],
  [20 * gibi, '20GB-30GB'],
  [10 * gibi, '10GB-20GB'],
  [5 * gibi, '5GB-10GB'],
  [gibi, '1GB-5GB'],
  [500 * mebi, '500MB-1GB'],
  [100 * mebi, '100MB-500MB'],
  [10 * mebi, '10MB-100MB'],
  [1, '0-10MB'],
];

/** Registers the metric; the function it answers takes one finished pull. */
export function pullDurationMetric(metrics: Metrics): (durationMs: number, imageBytes: number) => void {
  const histogram = metrics.histogram({
    name: 'kubelet_image_pull_duration_seconds',
    help: 'Duration in seconds to pull an image.',
    labels: ['image_size_in_bytes'],
    buckets: [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600],
  });
  return (durationMs, imageBytes) => {
    const label = sizeClasses.find(([bytes]) => imageBytes >= bytes)?.[1] ?? 'N/A';
    histogram.observe(durationMs / 1000, { image_size_in_bytes: label });
  };
}
