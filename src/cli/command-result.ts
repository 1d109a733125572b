/** What a command that answers and ends says; the executable prints it and exits. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How the terminal wants its text. */
export interface Terminal {
  /** Columns; texts are wrapped to it. */
  readonly width: number;
  readonly color: boolean;
}
