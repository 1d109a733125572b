/**
 * Generates `src/runtime/generated/` from `proto/`, offline, with buf and ts-proto.
 *
 *   node scripts/generate-protos.ts           writes the files
 *   node scripts/generate-protos.ts --check   fails when the committed files differ from a fresh generation
 *
 * Services come out as plain method tables: the gRPC library stays out of the generated code, so that it is
 * loaded only when a runtime is talked to. Messages get neither JSON nor partial constructors, which keeps
 * the code small and makes the compiler ask for every field of a request.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';

const root = path.dirname(import.meta.dirname);
const committed = path.join(root, 'src/runtime/generated');
const bin = path.join(root, 'node_modules/.bin');

const options = [
  'env=node',
  'esModuleInterop=true',
  'importSuffix=.ts',
  'enumsAsLiterals=true',
  'unrecognizedEnum=false',
  'forceLong=bigint',
  'outputServices=generic-definitions',
  'outputJsonMethods=false',
  'outputPartialMethods=false',
  'useExactTypes=false',
  'exportCommonSymbols=false',
];

/** File name → text of everything that `proto/` generates. */
function generate(): Map<string, string> {
  const out = mkdtempSync(path.join(tmpdir(), 'kubelet-ts-protos-'));
  try {
    const template = {
      version: 'v2',
      inputs: [{ directory: 'proto' }],
      plugins: [{ local: path.join(bin, 'protoc-gen-ts_proto'), out, opt: options }],
    };
    execFileSync(path.join(bin, 'buf'), ['generate', '--template', JSON.stringify(template)], {
      cwd: root,
      stdio: 'inherit',
      // The plugin's first line asks for `node`: let it be the pinned one.
      env: { ...process.env, PATH: `${bin}${path.delimiter}${process.env['PATH'] ?? ''}` },
    });
    return new Map(readdirSync(out).map((file) => [file, readFileSync(path.join(out, file), 'utf8')]));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Names of generated files that are missing, left over, or different. */
function differences(fresh: Map<string, string>): string[] {
  const names = new Set([...fresh.keys(), ...readdirSync(committed)]);
  return [...names].filter((name) => {
    try {
      return readFileSync(path.join(committed, name), 'utf8') !== fresh.get(name);
    } catch {
      return true;
    }
  });
}

const fresh = generate();
if (process.argv.includes('--check')) {
  const stale = differences(fresh);
  if (stale.length > 0) {
    console.error(
      `src/runtime/generated differs from proto/: ${stale.join(', ')}. Run \`npm run generate\`.`,
    );
    process.exitCode = 1;
  }
} else {
  rmSync(committed, { recursive: true, force: true });
  mkdirSync(committed, { recursive: true });
  for (const [name, text] of fresh) writeFileSync(path.join(committed, name), text);
}
