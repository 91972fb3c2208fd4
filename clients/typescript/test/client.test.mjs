// A device, its ledger and a server that fails now and then. Run by node --test; the bundle is the one that pages load.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as sl from "../../../src/sidelight/service/assets/client.js";

const utf8 = (text) => new TextEncoder().encode(text);
const digest = (bytes) => sl.toHex(sl.sha256(bytes));
const attribute = [
  { name: "smoker", kind: "categorical", values: ["no", "yes"], missing: "absent" },
  { name: "hours", kind: "numeric", values: ["few", "many"], edges: [7.5], missing: "absent" },
];
const unit = attribute.map(({ name }) => ({ attributes: [name], mechanism: "grr", epsilon: 0.5 }));
const protocol = { version: 1, protocol: "split", unit, attribute };
const terms = { smallest_crowd: 100, retention_days: null, most_reports: null, needs_token: false, keeps_reports: false };
const document = (asked, rounds) => utf8(JSON.stringify({ version: 1, purpose: "a test", contact: "nobody", rounds, terms, ...asked }));

class Server {
  counted = new Map();
  uploads = [];
  failures = [];
  constructor(asked, rounds) {
    this.task = document(asked, rounds);
    this.id = digest(this.task);
  }
  round(number) {
    return utf8(JSON.stringify({ version: 1, task: this.id, round: number, protocol, learnt: null }));
  }
  fetch = async (address, options) => {
    const failure = this.failures.shift();
    if (failure === "before") throw new TypeError("no network");
    if (typeof failure === "number") return reply(failure, utf8(JSON.stringify({ status: failure })));
    if (Array.isArray(failure)) return reply(failure[0], utf8(failure[1]));
    const answer = this.answer(address, options);
    if (failure === "after") throw new TypeError("the answer is lost");
    return answer;
  };
  answer(address, options) {
    const path = new URL(address).pathname;
    if (path === `/v1/tasks/${this.id}`) return reply(200, this.task);
    if (path === `/v1/tasks/${this.id}/state`) return reply(200, utf8(JSON.stringify({ task: this.id, rounds: [{ round: 1, state: "closed" }, { round: 2, state: "open" }] })));
    const [, number] = /rounds\/(\d+)(\/reports)?$/.exec(path);
    if (!path.endsWith("/reports")) return reply(200, this.round(Number(number)));
    const body = JSON.parse(options.body);
    assert.equal(body.round, digest(this.round(Number(number))));
    this.uploads.push(options.body);
    const answers = body.reports.map(({ id, report }) => {
      const status = this.counted.has(id) ? "repeated" : "accepted";
      assert.equal(this.counted.get(id) ?? report, report);
      this.counted.set(id, report);
      return { id, status };
    });
    return reply(200, utf8(JSON.stringify({ counts: {}, answers })));
  }
}

const reply = (status, bytes) => ({ status, arrayBuffer: async () => bytes.slice().buffer });

async function device(server, limits = [sl.limitOf(2.5)]) {
  const store = new sl.MemoryStore();
  const ledger = await sl.Ledger.open(store, "ann", limits);
  return { store, ledger, client: new sl.Client("https://collect.test", ledger, { fetch: server.fetch }) };
}

test("an answer is sent once and counted once, whatever fails", async () => {
  for (const failure of ["before", "after", 500, 503, 429, 408, 403, [200, "<html>"], [200, "{}"], [404, "<html>"], [409, "{}"], [302, ""]]) {
    const server = new Server({ protocol }, 3);
    const { client, store } = await device(server);
    const round = await client.round(await client.task(server.id), 1);
    server.failures = [failure];
    await assert.rejects(client.answer(round, { smoker: "yes", hours: 8 }), sl.AwayError);
    const again = new sl.Client("https://collect.test", await sl.Ledger.open(store, "ann"), { fetch: server.fetch });
    assert.equal((await again.resume())[0].status, failure === "after" ? "repeated" : "accepted");
    assert.deepEqual(await again.resume(), []);
    assert.equal(server.counted.size, 1);
    assert.equal(new Set(server.uploads).size, 1);
    assert.equal(await again.answer(round, { smoker: "no", hours: 1 }), null);
    assert.equal(server.counted.size, 1);
  }
});

test("a refusal of the service itself is final", async () => {
  for (const [failure, status] of [[409, "closed"], [400, "refused"]]) {
    const server = new Server({ protocol }, 1);
    const { client } = await device(server);
    const round = await client.round(await client.task(server.id), 1);
    server.failures = [failure];
    assert.equal((await client.answer(round, { smoker: "yes", hours: 8 })).status, status);
    assert.deepEqual(await client.resume(), []);
  }
});

test("what would spend too much is refused in one sentence, and nothing is sent", async () => {
  const server = new Server({ protocol }, 3);
  const { client } = await device(server);
  const task = await client.task(server.id);
  for (const number of [1, 2]) await client.answer(await client.round(task, number), { smoker: "yes", hours: 8 });
  const uploads = server.uploads.length;
  await assert.rejects(client.answer(await client.round(task, 3), { smoker: "yes", hours: 8 }), (error) => {
    assert.ok(error instanceof sl.OverspentError);
    assert.match(error.message, /^round 3 of the task '[0-9a-f]{64}' spends 1, and 0\.5 is left of 2\.5 in all time; it will never fit\.$/);
    return true;
  });
  assert.equal(server.uploads.length, uploads);
});

test("an upload never holds the answers, and the ledger holds the very bytes", async () => {
  const server = new Server({ protocol }, 1);
  const { client, store } = await device(server);
  const round = await client.round(await client.task(server.id), 1);
  const kept = await client.reserve(round, { smoker: "yes", hours: 8 }, "token");
  assert.deepEqual(await client.reserve(round, { smoker: "no", hours: 8 }), kept);
  const { reports } = JSON.parse(new TextDecoder().decode(kept));
  assert.equal(reports[0].token, "token");
  assert.equal(sl.fromBase64(reports[0].id, "id").length, 16);
  assert.equal(round.protocol.refusal(sl.fromBase64(reports[0].report, "report")), null);
  assert.ok(new TextDecoder().decode(store.content).includes(sl.toBase64(kept)));
});

test("many waiting reports go in batches, halved where they are too many", async () => {
  const server = new Server({ protocol }, 1);
  const digestOfRound = digest(server.round(1));
  const kept = Array.from({ length: 9 }, () => sl.uploadOf(digestOfRound, sl.protocolFrom(JSON.stringify(protocol)).report([0, 1]), sl.randomBytes(16)));
  server.failures = [413];
  const outcomes = await sl.upload(server.fetch, `https://collect.test/v1/tasks/${server.id}/rounds/1/reports`, kept);
  assert.deepEqual(outcomes.map(({ status }) => status), Array(9).fill("accepted"));
  assert.deepEqual(server.uploads.map((body) => JSON.parse(body).reports.length), [4, 5]);
});

test("documents that are not what they were said to be are refused", async () => {
  const server = new Server({ protocol }, 2);
  const { client } = await device(server);
  const task = await client.task(server.id);
  server.task = document({ protocol: { ...protocol, unit: unit.map((item) => ({ ...item, epsilon: 5 })) } }, 2);
  await assert.rejects(client.task(server.id), /is not the document that its digest/);
  const dearer = utf8(JSON.stringify({ version: 1, task: task.id, round: 1, protocol: { ...protocol, unit: unit.map((item) => ({ ...item, epsilon: 5 })) }, learnt: null }));
  assert.throws(() => sl.roundFrom(task, 1, dearer), /asks otherwise than the task says: it spends 10 through 'spl', and the task says 1 through/);
  const swapped = { ...protocol, attribute: [{ ...attribute[0], values: ["yes", "no"] }, attribute[1]] };
  const meant = utf8(JSON.stringify({ version: 1, task: task.id, round: 1, protocol: swapped, learnt: null }));
  assert.throws(() => sl.roundFrom(task, 1, meant), /asks otherwise than the task says/);
  const other = utf8(JSON.stringify({ version: 1, task: "0".repeat(64), round: 1, protocol, learnt: null }));
  assert.throws(() => sl.roundFrom(task, 1, other), /of another task or round/);
});

test("of two phases a device takes part in one", async () => {
  const phases = { epsilon: 1, method: "corr-rr", copying: "published", share: 0.3, groups: 1, attribute };
  const server = new Server({ phases }, 2);
  const task = sl.taskFrom(server.task, server.id);
  assert.equal(task.protocol.epsilon <= 1, true);
  const first = Array.from({ length: 2000 }, (_, i) => sl.takesFirst(`person ${i}`, task.id, 0.3)).filter(Boolean).length;
  assert.ok(Math.abs(first - 600) < 6 * Math.sqrt(2000 * 0.21)); // six sigmas, fixed names
  const { client } = await device(server);
  const own = sl.takesFirst("ann", task.id, 0.3) ? 1 : 2;
  server.round = (number) => utf8(JSON.stringify({ version: 1, task: server.id, round: number, protocol, learnt: null }));
  if (own === 2) await assert.rejects(client.openRound(task), /must hide its choice/);
  else assert.equal(await client.openRound(task), null);
});

test("a crash in the middle of a line is cut off, and another's ledger is refused", async () => {
  const store = new sl.MemoryStore();
  const ledger = await sl.Ledger.open(store, "ann", [sl.limitOf(1, { days: 30 }), sl.limitOf(3, { kind: "year" }), sl.limitOf(4, {}, 1e-6)], 1_700_000_000);
  const question = { task: "t", round: 0, charges: [{ attribute: "a", channel: "grr", units: sl.charged(0.1), epoch: null }] };
  const report = await ledger.reserve(question, () => Uint8Array.of(1, 2, 3), 1_700_000_000);
  const whole = store.content;
  for (const cut of [1, 40, 70, 100]) {
    const crashed = new sl.MemoryStore(whole.slice(0, whole.length - cut));
    const again = await sl.Ledger.open(crashed, "ann");
    assert.equal(again.pending.length, 0);
    assert.deepEqual(await again.reserve(question, () => report, 1_700_000_000), report);
    assert.deepEqual(crashed.content, whole);
  }
  await assert.rejects(sl.Ledger.open(new sl.MemoryStore(whole), "bob"), /is the ledger of another person/);
  await ledger.send([question], async () => {});
  await assert.rejects(ledger.reserve(question, () => report, 1_700_000_000), /is acknowledged; it has no report any more/);
  await assert.rejects(ledger.reserve({ ...question, round: 1 }, () => report, 1_600_000_000), /the clock was set back/);
});

test("numbers of bytes and of thresholds that are not given are not made up", () => {
  const one = sl.createMechanism("grr", 4, 1);
  assert.throws(() => one.draw(1, new sl.Draws(new Uint8Array(7))), sl.OutOfBytesError);
  assert.equal(one.draw(1, new sl.Draws()).values.length, 1);
});
