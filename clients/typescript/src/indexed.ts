/* A ledger in a browser's database: the same lines as in the file, one record each, for one page at a time. */
import { joined } from "./bytes.js";
import { InputError } from "./errors.js";
import type { Store } from "./ledger.js";

const LINES = "lines";

const finished = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("the database gave up"));
  });

const result = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the database gave up"));
  });

/** A place for a ledger in IndexedDB; `IndexedStore.open(name)` takes it for this page alone. */
export class IndexedStore implements Store {
  private count = 0;

  private constructor(readonly label: string, private readonly database: IDBDatabase, private readonly free: () => void) {}

  static async open(name = "sidelight-ledger"): Promise<IndexedStore> {
    const label = `the ledger ${name}`;
    const free = await lock(name, label);
    try {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(LINES);
      return new IndexedStore(label, await result(request), free);
    } catch (error) {
      free();
      throw new InputError(`${label} cannot be opened: ${error instanceof Error ? error.message : String(error)}.`);
    }
  }

  async read(): Promise<Uint8Array> {
    const lines = (await result(this.database.transaction(LINES).objectStore(LINES).getAll())) as Uint8Array[];
    this.count = lines.length;
    return joined(lines);
  }

  /** Add a line under the next number; strict durability waits until it is on the disk. */
  async append(line: Uint8Array): Promise<void> {
    const transaction = this.database.transaction(LINES, "readwrite", { durability: "strict" });
    transaction.objectStore(LINES).add(line, this.count); // an error if another page was faster
    await finished(transaction);
    this.count += 1;
  }

  /** Nothing is ever left unfinished here: a transaction is there, or it is not. */
  async cut(): Promise<void> {
    throw new InputError(`${this.label} is damaged: its last line is not whole.`);
  }

  async close(): Promise<void> {
    this.database.close();
    this.free();
  }
}

/** Take a name for this page, where the browser has locks; without them the numbers of lines keep two pages apart. */
async function lock(name: string, label: string): Promise<() => void> {
  const locks = globalThis.navigator?.locks;
  if (locks === undefined) return () => undefined;
  return new Promise((resolve, reject) => {
    void locks.request(name, { ifAvailable: true }, (held) => {
      if (held === null) return reject(new InputError(`${label} is in use by another page; wait for it.`));
      return new Promise<void>((free) => resolve(free));
    });
  });
}
