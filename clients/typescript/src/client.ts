/* A device that answers tasks of a collection service: fetch, check, spend, randomise, send. */
import { type Bytes, fromUtf8, toBase64, utf8 } from "./bytes.js";
import { type Round, roundFrom, type Task, taskFrom } from "./documents.js";
import { Draws, randomBytes } from "./draws.js";
import { InputError, quoted } from "./errors.js";
import { parse, Table } from "./json.js";
import type { Ledger } from "./ledger.js";
import { charged, type Question } from "./limits.js";
import type { Answers } from "./protocols.js";
import { sha256 } from "./sha256.js";

const ID_BYTES = 16;
const MOST_REPORTS = 1000;
/** Words of the server after which a report is never sent again. */
const FINAL = ["accepted", "repeated", "malformed", "closed", "over quota", "bad token"];
/** Answers to an upload after which the same one may be taken. */
const AGAIN = [408, 425, 429];
/** Those after which it never is. */
const REFUSED = [400, 404, 409, 413, 415];

/** What became of a report. */
export interface Outcome {
  readonly status: string;
  readonly reason: string;
}

/** The part of `fetch` that is used. */
export type Fetch = (address: string, options?: { method?: string; headers?: Record<string, string>; body?: string }) => Promise<{
  status: number;
  arrayBuffer(): Promise<ArrayBuffer>;
}>;

export interface Options {
  /** By default the page's own, without cookies and without following to another server. */
  readonly fetch?: Fetch;
  /** How many reports an upload has at most. */
  readonly most?: number;
}

/** The server cannot be reached, or has not decided; what is kept is sent again by `resume`. */
export class AwayError extends Error {
  override name = "AwayError";
}

/** A device and its ledger at one server. */
export class Client {
  private readonly fetch: Fetch;
  private readonly most: number;

  constructor(private readonly server: string, private readonly ledger: Ledger, options: Options = {}) {
    this.fetch = options.fetch ?? ((address, given) => globalThis.fetch(address, { ...given, credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" }));
    this.most = options.most ?? MOST_REPORTS;
  }

  /** Fetch a task; its document must be the one that its id names. */
  async task(id: string): Promise<Task> {
    if (!/^[0-9a-f]{64}$/.test(id)) throw new InputError(`a task's id has 64 hexadecimal digits, got ${quoted(id)}.`);
    return taskFrom(await this.get(`/v1/tasks/${id}`), id);
  }

  /** Fetch a round of a task, and check that it keeps to the task's budgets. */
  async round(task: Task, number: number): Promise<Round> {
    return roundFrom(task, number, await this.get(`/v1/tasks/${task.id}/rounds/${number}`));
  }

  /** Fetch the open round that this device takes part in, the lowest one; null where there is none. */
  async openRound(task: Task): Promise<Round | null> {
    const label = "the state of the task";
    const state = Table.of(parse(fromUtf8(await this.get(`/v1/tasks/${task.id}/state`), label), label), label);
    const open = state.tables("rounds").filter((item) => item.text("state") === "open").map((item) => item.whole("round", 1, task.rounds));
    const own = task.phases === null ? null : takesFirst(this.ledger.person, task.id, task.phases.share) ? 1 : 2;
    const number = open.find((one) => own === null || one === own);
    return number === undefined ? null : this.round(task, number);
  }

  /** What answering a round spends: the budget of a whole record. */
  question(round: Round): Question {
    const { protocol } = round;
    const attribute = protocol.schema.map(({ name }) => name).join(", ");
    return { task: round.task, round: round.number, charges: [{ attribute, channel: protocol.name, units: charged(protocol.epsilon), epoch: null }] };
  }

  /** Spend, randomise and keep what is to be sent: nothing leaves yet, and asking again gives the same bytes. */
  async reserve(round: Round, answers: Answers, token?: string, draws: Draws = new Draws()): Promise<Bytes> {
    const record = round.protocol.encode(answers);
    return this.ledger.reserve(this.question(round), () => uploadOf(round.digest, round.protocol.report(record, draws), randomBytes(ID_BYTES), token));
  }

  /** Answer a round: reserve, send, acknowledge; null where it was answered before. */
  async answer(round: Round, answers: Answers, token?: string): Promise<Outcome | null> {
    const question = this.question(round);
    const outcomes: Outcome[] = [];
    await this.ledger.answer(
      question, () => uploadOf(round.digest, round.protocol.report(round.protocol.encode(answers)), randomBytes(ID_BYTES), token),
      async (sent) => void outcomes.push(...(await this.upload(sent))),
    );
    return outcomes[0] ?? null;
  }

  /** Send whatever may not have arrived, round by round, in batches: the same bytes again. */
  async resume(): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    const waiting = this.ledger.pending.map(({ question }) => question);
    for (const place of new Set(waiting.map(placeOf))) {
      const asked = waiting.filter((question) => placeOf(question) === place);
      for (let at = 0; at < asked.length; at += this.most) {
        await this.ledger.send(asked.slice(at, at + this.most), async (sent) => void outcomes.push(...(await this.upload(sent))));
      }
    }
    return outcomes;
  }

  private upload(sent: readonly { question: Question; report: Bytes }[]): Promise<Outcome[]> {
    const { task, round } = sent[0]!.question;
    return upload(this.fetch, `${this.server}/v1/tasks/${task}/rounds/${round}/reports`, sent.map(({ report }) => report));
  }

  private async get(path: string): Promise<Uint8Array> {
    const { status, body } = await reached(this.fetch, this.server + path);
    if (status !== 200) throw new InputError(`${this.server}${path} answered ${status}.`);
    return body;
  }
}

const placeOf = ({ task, round }: Question): string => `${task} ${round}`;

/** Whether a device takes part in the first of two phases: the same for ever, and known to nobody else. */
export function takesFirst(person: string, task: string, share: number): boolean {
  const digest = sha256(utf8(`${[...person].length}:${person}${task}`));
  return new DataView(digest.buffer).getBigUint64(0, true) < share * 2 ** 64;
}

/** The upload of one report, to the byte: what a ledger keeps, so that a retry sends the same. */
export function uploadOf(round: string, report: Uint8Array, id: Uint8Array, token?: string): Bytes {
  const item = { id: toBase64(id), report: toBase64(report), ...(token === undefined ? {} : { token }) };
  return utf8(JSON.stringify({ reports: [item], round }));
}

async function reached(fetch: Fetch, address: string, options?: Parameters<Fetch>[1]): Promise<{ status: number; body: Uint8Array }> {
  try {
    const response = await fetch(address, options);
    const body = new Uint8Array(await response.arrayBuffer());
    if (response.status < 500 && !AGAIN.includes(response.status)) return { status: response.status, body };
    throw new Error(`it answered ${response.status}`);
  } catch (error) {
    throw new AwayError(`${address} cannot be reached: ${error instanceof Error ? error.message : String(error)}; what is kept is sent again later.`);
  }
}

/** Send kept uploads of one round as one; raise unless the server has decided on every report. */
export async function upload(fetch: Fetch, address: string, kept: readonly Uint8Array[]): Promise<Outcome[]> {
  const single = kept.map((one) => JSON.parse(fromUtf8(one, "a kept upload")) as { reports: { id: string }[]; round: string });
  const rounds = new Set(single.map(({ round }) => round));
  if (rounds.size !== 1) throw new InputError("an upload has reports of one round.");
  const reports = single.flatMap((one) => one.reports);
  const [round] = rounds;
  const { status, body } = await reached(fetch, address, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ reports, round }),
  });
  if (status === 413 && kept.length > 1) {
    const half = kept.length >> 1;
    return [...(await upload(fetch, address, kept.slice(0, half))), ...(await upload(fetch, address, kept.slice(half)))];
  }
  const outcomes = decided(status, body);
  if (outcomes === null) return reports.map(() => ({ status: status === 409 ? "closed" : "refused", reason: `the server answered ${status}` }));
  return reports.map(({ id }) => {
    const outcome = outcomes.get(id);
    if (outcome === undefined || !FINAL.includes(outcome.status)) {
      throw new AwayError(`the server has not decided on every report${outcome ? `, it says ${quoted(outcome.status)}` : ""}; what is kept is sent again later.`);
    }
    return outcome;
  });
}

/**
 * What the service says of each report by its id; null where it refused them all. Something on the way (a portal, a
 * proxy) may answer instead: taken for a refusal, that would lose the report and its budget.
 */
function decided(status: number, body: Uint8Array): Map<string, Outcome> | null {
  try {
    const table = Table.of(parse(fromUtf8(body, "the answer"), "the answer"), "the answer");
    if (status === 200) {
      return new Map(table.tables("answers").map((item) => [
        item.text("id"), { status: item.text("status"), reason: item.maybe("reason", (key) => item.text(key), "") },
      ]));
    }
    if (REFUSED.includes(status)) {
      table.whole("status", status, status);
      return null;
    }
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  throw new AwayError(`the service answered ${status} without a decision; what is kept is sent again later.`);
}
