/* A person's ledger: one over all who ask. It spends before it sends, and sends one noise for a question. */
import { type Bytes, joined, toHex } from "./bytes.js";
import { randomBytes } from "./draws.js";
import { type Answer, Book, type Entry, entryData, type Opening, openingData, readEntry, readOpening } from "./entries.js";
import { InputError, quoted } from "./errors.js";
import { damaged, lineOf, readLines } from "./lines.js";
import { LATEST, type Limit, leftOf, named, type Question, type Remaining } from "./limits.js";
import { KeyedMemory, SECRET_BYTES } from "./memory.js";

/** What a ledger needs of a place to keep its lines; what `append` has returned from is durable. */
export interface Store {
  /** What messages call it. */
  readonly label: string;
  read(): Promise<Uint8Array>;
  append(line: Uint8Array): Promise<void>;
  /** Keep the first bytes alone: what follows is a line that a crash left unfinished. */
  cut(size: number): Promise<void>;
  close(): Promise<void>;
}

/** What makes a report, from the device's memory where it needs that. */
export type Make = (memory: KeyedMemory) => Uint8Array;

/** What sends reports; it returns when the server's answer to each is final, and raises otherwise. */
export type Send = (answers: readonly { question: Question; report: Bytes }[]) => Promise<void>;

/** A ledger in memory, for Node and for tests: it is lost with the process. */
export class MemoryStore implements Store {
  readonly label = "the ledger";
  constructor(public content: Uint8Array = new Uint8Array(0)) {}
  async read(): Promise<Uint8Array> {
    return this.content;
  }
  async append(line: Uint8Array): Promise<void> {
    this.content = joined([this.content, line]);
  }
  async cut(size: number): Promise<void> {
    this.content = this.content.slice(0, size);
  }
  async close(): Promise<void> {}
}

/** What one person, or one device, has spent and sent. Every method waits for the one before it. */
export class Ledger {
  private turn: Promise<unknown> = Promise.resolve();
  private isOpen = true;

  private constructor(private readonly store: Store, private readonly book: Book, private readonly digests: Uint8Array[]) {}

  /** Open the ledger of a person; a store without a line gets a new one if there are limits for it. */
  static async open(store: Store, person: string, limits?: readonly Limit[], now: number = clock()): Promise<Ledger> {
    let content = await store.read();
    if (content.length === 0 && limits !== undefined) {
      await store.append(firstLine(person, limits, now));
      content = await store.read();
    }
    const chain = readLines(content, store.label);
    if (chain.bodies.length === 0) throw new InputError(`${store.label} is no ledger: it has no whole line; open it with limits to make one.`);
    const opening = readOpening(chain.bodies[0]!, store.label);
    if (opening.person !== person) {
      throw new InputError(`${store.label} is the ledger of another person, ${quoted(opening.person)}, not of ${quoted(person)}; each has one.`);
    }
    const book = new Book(opening);
    chain.bodies.slice(1).forEach((body, i) => {
      try {
        book.apply(readEntry(body, store.label));
      } catch (error) {
        throw error instanceof InputError ? damaged(store.label, i + 2, `cannot follow: ${error.message.replace(/\.$/, "")}`) : error;
      }
    });
    if (chain.size < content.length) await store.cut(chain.size);
    return new Ledger(store, book, [...chain.digests]);
  }

  /** Whose it is, or which device's. */
  get person(): string {
    return this.book.opening.person;
  }

  /** How far the ledger has come, to be kept elsewhere: an older copy shows. */
  get head(): { lines: number; digest: string } {
    return { lines: this.digests.length, digest: toHex(this.digests.at(-1)!) };
  }

  /** All questions that were paid for. */
  get answers(): Answer[] {
    return [...this.book.answers.values()];
  }

  /** Those whose reports may not have arrived. */
  get pending(): Answer[] {
    return this.answers.filter(({ state }) => state === "reserved" || state === "sent");
  }

  /** The largest charge that each limit leaves, in billionths of a nat. */
  remaining(now: number = clock()): Remaining[] {
    const { opening, uses } = this.book;
    const moment = this.book.timeOf(now);
    return opening.limits.map((limit) => ({ limit, left: leftOf(limit, uses, opening.opened, moment), returns: null }));
  }

  /** Raise if a question would be refused; nothing is spent. */
  check(question: Question, now: number = clock()): void {
    if (this.book.asked(question) === undefined) this.book.checkFits(question, this.book.timeOf(now));
  }

  /** Spend what a question costs, and return the bytes of its report: the same ones for ever. */
  reserve(question: Question, make: Make, now: number = clock()): Promise<Bytes> {
    return this.inTurn(async () => {
      const answer = this.book.asked(question);
      if (answer !== undefined) {
        if (answer.report === null) throw new InputError(`${named(question)} is ${answer.state}; it has no report any more.`);
        return answer.report;
      }
      const moment = this.book.timeOf(checkTime(now));
      this.book.checkFits(question, moment);
      // The values that get frozen meanwhile hold only if the reservation does.
      const memory = new KeyedMemory(this.book.opening.secret, this.book.frozen);
      const report = make(memory).slice();
      const frozen = new Map([...memory.frozen].filter(([held]) => !this.book.frozen.has(held)));
      await this.write({ kind: "reserve", question, time: moment, report, frozen });
      return report;
    });
  }

  /** Send the reports of reserved questions, the same bytes each time, and acknowledge them. */
  send(questions: readonly Question[], send: Send): Promise<void> {
    return this.inTurn(async () => {
      const sent = questions.map((question) => {
        const answer = this.book.answerTo(question);
        if (!answer?.report) throw new InputError(`${named(question)} is ${answer?.state ?? "not reserved"}; there is nothing to send.`);
        return { question, report: answer.report, state: answer.state };
      });
      for (const { question, state } of sent) if (state === "reserved") await this.write(step("send", question));
      await send(sent.map(({ question, report }) => ({ question, report })));
      for (const { question } of sent) await this.write(step("acknowledge", question));
    });
  }

  /** Reserve a question, send its report and acknowledge it; one that has been answered stays so. */
  async answer(question: Question, make: Make, send: Send, now: number = clock()): Promise<void> {
    if (this.book.asked(question)?.state === "acknowledged") return;
    await this.reserve(question, make, now);
    await this.send([question], send);
  }

  /** Take back a report that was never sent, with its charge; the question gets no other answer. */
  withdraw(question: Question): Promise<void> {
    return this.inTurn(() => this.write(step("withdraw", question)));
  }

  /** Let another page or process open the ledger. */
  async close(): Promise<void> {
    this.isOpen = false;
    await this.store.close();
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return done;
  }

  /** Make an entry durable, then take it over; where that fails, only the store knows what holds. */
  private async write(entry: Entry): Promise<void> {
    if (!this.isOpen) throw new InputError("the ledger is closed; open it again.");
    if (entry.kind !== "reserve") this.book.checkStep(entry);
    const { line, digest } = lineOf(this.digests.at(-1)!, entryData(entry));
    try {
      await this.store.append(line);
    } catch (error) {
      await this.close();
      const reason = error instanceof Error ? error.message : String(error);
      throw new InputError(`${this.store.label} cannot be written: ${reason}; nothing was sent. Mend that, and open it again.`);
    }
    this.book.apply(entry);
    this.digests.push(digest);
  }
}

const step = (kind: "send" | "acknowledge" | "withdraw", { task, round }: Question): Entry => ({ kind, task, round });

const clock = (): number => Math.floor(Date.now() / 1000);

function checkTime(now: number): number {
  if (!Number.isInteger(now) || now < 0 || now > LATEST) throw new InputError(`\`now\` must be whole seconds since 1970, got ${now}.`);
  return now;
}

/** The first line of a new ledger. */
export function firstLine(person: string, limits: readonly Limit[], now: number, secret: Bytes = randomBytes(SECRET_BYTES), level: string | null = null): Bytes {
  if (!person) throw new InputError("`person` must be the name of a person or device.");
  if (limits.length === 0) throw new InputError("`limits` must be at least one limit; limitOf(1) allows 1 for all time.");
  const opening: Opening = { person, opened: checkTime(now), secret, limits, level };
  return lineOf(null, openingData(opening)).line;
}
