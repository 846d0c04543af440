/** Amounts by unit, beside one request. Money is in millionths of the limit's currency. */
export interface Cost {
  requests?: number;
  weight?: number;
  orders?: number;
  input?: number;
  output?: number;
  tokens?: number;
  money?: number;
}

export interface Wait {
  cost?: Cost;
  /** Seconds. If the turn would come later, the call is refused, at once if that can be foreseen. */
  maxWait?: number;
  /** Leaves the line when it aborts. */
  signal?: AbortSignal;
}

export interface Options {
  /** The path of the daemon's socket. If missing, that of this user's daemon. */
  socket?: string;
  /** The address of `paceline daemon --listen`, with the key of --key-env. */
  url?: string;
  key?: string;
  /** The name by which turns are shared by weight. */
  client?: string;
  /** Seconds to wait for a daemon that is away. If missing, 30. */
  daemonWait?: number;
}

/** The daemon refused a permit. kind is a section of docs/permit.md. */
export class Refused extends Error {
  readonly status: number;
  readonly kind: string;
  /** Seconds. */
  readonly wait: number;
  readonly ahead: number;
}

/** No daemon came in time. Nothing was granted. */
export class Away extends Error {}

/** Leave to send one request. Settle it once; later reports change nothing. */
export class Permit {
  readonly id: string;
  /** The names of the server's key and target in whose limits it counts: the request has to use them. Empty: it has none. */
  readonly key: string;
  readonly target: string;
  /** Whether the request may still be sent. Ask right before the send. */
  fresh(): boolean;
  readonly settled: boolean;
  /** The final cost, which is settled with the end. */
  actual(cost: Cost): this;
  accepted(): void;
  /** The server refused it. retryAfter keeps all clients away for so many seconds. */
  refused(retryAfter?: number): void;
  /** It failed, and counts. */
  failed(): void;
  /** It was not sent, and does not count. */
  unsent(): void;
  /** It may have been sent. */
  unknown(): void;
  /** HTTP answered it. Fields about limits and a refusal's body are reported; cookies and keys are not. */
  answered(status: number, headers?: Headers | Iterable<readonly [string, string]> | Record<string, string>, body?: string): void;
}

/** The permits of one acquire. Its own methods settle together those that are not settled yet. */
export class Permits extends Array<Permit> {
  /** Whether the requests may still be sent. Ask right before the send. */
  fresh(): boolean;
  accepted(): void;
  refused(retryAfter?: number): void;
  failed(): void;
  unsent(): void;
  unknown(): void;
}

export class Limit {
  readonly name: string;
  readonly client: string;
  /** Waits for the first permit, and returns up to n that may go now. */
  acquire(n?: number, wait?: Wait): Promise<Permits>;
  /** Waits for the turn, and calls f. Its end settles the permit as accepted, an error as unknown. */
  run<T>(f: (permit: Permit) => T | Promise<T>, wait?: Wait): Promise<T>;
  /** A fetch whose requests wait for their turn and settle by their answers. It heeds init.signal. */
  fetch(inner?: typeof globalThis.fetch, wait?: Wait): typeof globalThis.fetch;
  /** How many seconds a request of this cost would wait, and how many are before it. */
  ask(cost?: Cost): Promise<{wait: number; ahead: number}>;
}

export class Paceline {
  constructor(options?: Options);
  /**
   * The limit of a name, or that of a server to which `paceline exec` leads programs: "api.example.com". credential is for
   * a server that tells keys apart: what requests send as the key, such as "Bearer KEY".
   */
  limit(name: string, client?: string, credential?: string): Limit;
  /** The state of all limits. */
  limits(): Promise<Record<string, any>>;
  /** Reports all that was settled. It ends once the daemon has them. Without it, reports follow by themselves a moment later. */
  flush(): Promise<void>;
  /** Ends connections. Permits that are open end as unknown. */
  close(): void;
}
