/** Builds the pod sources the configuration asks for. */
import { join } from 'node:path';
import type { Clock } from '../concurrency/clock.ts';
import type { NodeAgentSettings } from '../config/settings.ts';
import { FileSource } from '../sources/file-source.ts';
import { LastGoodManifests } from '../sources/last-good-manifests.ts';
import { createManifestDecoder } from '../sources/manifest-decoder.ts';
import type { StaticSource } from '../sources/manifest-error.ts';
import type { PodSource } from '../sources/pod-source.ts';
import { UrlSource } from '../sources/url-source.ts';
import type { Logger } from '../telemetry/logger.ts';

export interface PodSourcesInput {
  readonly settings: Pick<NodeAgentSettings, 'staticPods' | 'rootDirectory'>;
  readonly nodeName: string;
  readonly featureEnabled: (gate: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The sources that the settings name, in no particular order; empty when they name none. Reads the last good
 * manifests of an earlier agent.
 */
export async function buildPodSources(input: PodSourcesInput): Promise<PodSource[]> {
  const { settings, nodeName, featureEnabled, clock, logger: log } = input;
  const { path, url, urlHeaders, fileCheckMs, httpCheckMs } = settings.staticPods;
  const decoder = (source: StaticSource) =>
    createManifestDecoder({ source, nodeName, now: () => clock.now(), featureEnabled });
  const lastGood = new LastGoodManifests({
    directory: join(settings.rootDirectory, 'kubelet-ts', 'manifests'),
    clock,
    log,
  });
  await lastGood.load();

  const sources: PodSource[] = [];
  if (path !== undefined) {
    const decode = decoder('file');
    sources.push(new FileSource({ path, checkFrequency: fileCheckMs, decode, clock, log, lastGood }));
  }
  if (url !== undefined) {
    const decode = decoder('http');
    sources.push(
      new UrlSource({ url, headers: urlHeaders, checkFrequency: httpCheckMs, decode, clock, log, lastGood }),
    );
  }
  return sources;
}
