/**
 * Writes metrics in the Prometheus text format straight into a buffer, for thousands of series that exist
 * only while they are scraped. What a registry keeps between scrapes belongs into `MetricsRegistry`.
 *
 * A family is opened once, its samples follow it; the writer does not check that.
 */

/** Room for the longest value and time stamp in text. */
const longestEnd = 64;

export class ExpositionWriter {
  #buffer: Buffer;
  #length = 0;
  #name: Buffer = Buffer.alloc(0);

  /** `capacity`: bytes to begin with; it grows by itself. */
  constructor(capacity = 64 * 1024) {
    this.#buffer = Buffer.allocUnsafeSlow(capacity);
  }

  /** Opens a family of metrics. */
  family(name: string, type: 'counter' | 'gauge', help: string): void {
    this.#name = Buffer.from(name);
    this.#text(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`);
  }

  /**
   * A sample of the family that was opened last. `labels`: what {@link labelText} makes, or a buffer of it;
   * empty for none. `end`: what {@link timestampEnd} makes.
   */
  sample(labels: string | Uint8Array, value: number, end = '\n'): void {
    const room =
      this.#name.length + (typeof labels === 'string' ? labels.length * 3 : labels.length) + longestEnd;
    if (this.#length + room > this.#buffer.length) this.#grow(room);
    this.#buffer.set(this.#name, this.#length);
    this.#length += this.#name.length;
    if (typeof labels === 'string') this.#length += this.#buffer.write(labels, this.#length);
    else {
      this.#buffer.set(labels, this.#length);
      this.#length += labels.length;
    }
    this.#length += this.#buffer.write(` ${exposed(value)}${end}`, this.#length, 'latin1');
  }

  /** What was written; the writer begins anew, in the same memory: use the bytes before writing again. */
  take(): Buffer {
    const written = this.#buffer.subarray(0, this.#length);
    this.#length = 0;
    return written;
  }

  #text(text: string): void {
    const room = text.length * 3;
    if (this.#length + room > this.#buffer.length) this.#grow(room);
    this.#length += this.#buffer.write(text, this.#length);
  }

  #grow(room: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#buffer.length, this.#length + room));
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }
}

/** `{name="value",…}`; empty for no labels. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

/** The end of a sample's line that says when it was measured, epoch milliseconds. */
export function timestampEnd(ms: number): string {
  return ` ${Math.trunc(ms)}\n`;
}

const special = /[\\"\n]/g;

export function escapeLabel(value: string): string {
  if (!/[\\"\n]/.test(value)) return value;
  return value.replace(special, (char) => (char === '\n' ? '\\n' : `\\${char}`));
}

function exposed(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}
