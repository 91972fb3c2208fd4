// Runs vectors through a bundle: node test/vectors.mjs BUNDLE FILE.. ; prints how many of each kind agreed.
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [, , bundle, ...files] = process.argv;
const sl = await import(pathToFileURL(bundle));
const readers = { protocol: sl.protocolFrom, plan: sl.planFrom, parameters: sl.parametersFrom };
const counts = {};
const faults = [];

const count = (what, agrees, told) => {
  counts[what] = (counts[what] ?? 0) + 1;
  if (!agrees && faults.push(`${what}: ${told()}`) > 20) throw new Error(faults.join("\n"));
};

const refusal = (work) => {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof sl.InputError) return error.message;
    throw error;
  }
};

function reports(vector) {
  const protocol = readers[vector.kind](vector.document);
  const random = sl.fromHex(vector.random);
  const budget = protocol.epsilon === Infinity ? null : protocol.epsilon;
  count("documents", protocol.length === vector.length && budget === vector.epsilon, () => `${vector.family}: ${protocol.length} bytes, epsilon ${budget}, not ${vector.length} and ${vector.epsilon}`);
  let start = 0;
  vector.reports.forEach((wanted, i) => {
    const draws = new sl.Draws(random.subarray(start, vector.ends[i]));
    const made = sl.toHex(protocol.report(vector.records[i], draws));
    const read = draws.used === vector.ends[i] - start;
    count(vector.family, made === wanted && read && protocol.refusal(sl.fromHex(made)) === null, () => `record ${vector.records[i]} gives ${made}, not ${wanted}`);
    start = vector.ends[i];
  });
}

function badReports(vector) {
  const protocol = sl.protocolFrom(vector.document);
  for (const { report, refusal: wanted } of vector.reports) {
    const given = protocol.refusal(sl.fromHex(report));
    count("bad reports", given === wanted, () => `${report} is refused as ${given}, not ${wanted}`);
  }
}

function badDocuments({ kind, text, names }) {
  const said = refusal(() => readers[kind](text));
  count("bad documents", said?.includes(names) && !said.includes("\n"), () => `${text.slice(0, 200)} .. is refused as ${said}, which does not name ${names}`);
}

function thresholds({ size, epsilon, other, realised }) {
  let made = null;
  const said = refusal(() => (made = sl.createMechanism("grr", size, epsilon)));
  const agrees = other === null ? said !== null : String(made?.other) === other && made.epsilon === realised;
  count("thresholds", agrees, () => `${size} values at ${epsilon} have ${made?.other} and ${made?.epsilon}, not ${other} and ${realised}`);
}

const hex = (words) => words.map(String);

function memory({ words, memos }) {
  for (const vector of words) {
    const [purpose, channel, attribute, epoch, subject] = vector.topic;
    const topic = { purpose, channel, attribute, epoch, subject };
    const made = hex(new sl.KeyedMemory(sl.fromHex(vector.secret)).words(topic, vector.words.length));
    count("words", sl.toHex(sl.encoded(topic)) === vector.encoded && made.join() === vector.words.join(), () => `${vector.topic} gives ${made}`);
  }
  for (const vector of memos) {
    const { mechanism, epsilon, values } = vector;
    const stored = mechanism === "dbitflip" ? new sl.BitFlips(values.length, epsilon) : sl.createMechanism(mechanism, values.length, epsilon);
    const attribute = { name: vector.attribute, kind: "categorical", values, edges: [], missing: "absent", merged: new Map() };
    const memo = sl.recalled(stored, attribute, new sl.KeyedMemory(sl.fromHex(vector.secret)), vector.epoch, values.indexOf(vector.value));
    const made = stored.form.kind === "bits" ? packed(memo.values, values.length, vector.memo.length) : memo.values;
    const agrees = made.join() === vector.memo.join() && (memo.seed?.toString() ?? null) === vector.seed;
    count("memos", agrees && stored.identity === vector.channel, () => `${mechanism} of ${vector.value}: ${made}, not ${vector.memo}`);
  }
}

function packed(marked, size, length) {
  const bytes = new Uint8Array(length);
  for (const value of marked) bytes[value >> 3] |= 1 << (value & 7);
  return [...bytes];
}

const utf8 = (text) => new TextEncoder().encode(text);
const opened = (content, person) => sl.Ledger.open(new sl.MemoryStore(utf8(content)), person);

async function ledger({ files: whole, bad, admissions }) {
  for (const vector of whole) {
    const one = await opened(vector.content, vector.person);
    const answers = one.answers.map(({ question, state, report }) => ({ task: question.task, round: question.round, state, report: report && sl.toHex(report) }));
    const left = one.remaining(vector.now).map((remaining) => remaining.left);
    const told = JSON.stringify([one.head.lines, one.head.digest, answers, left]);
    count("ledgers", told === JSON.stringify([vector.lines, vector.digest, vector.answers, vector.left]), () => told);
  }
  for (const vector of bad) {
    const said = await opened(vector.content, vector.person).then(() => null, (error) => (error instanceof sl.InputError ? error.message : null));
    count("bad ledgers", said !== null && !said.includes("\n"), () => `${vector.why} is not refused`);
  }
  for (const vector of admissions) await admission(vector);
}

async function admission({ opened: time, limits, steps }) {
  const store = new sl.MemoryStore(sl.firstLine("ann", limits, time, new Uint8Array(32)));
  const one = await sl.Ledger.open(store, "ann");
  for (const [number, asked] of steps.entries()) {
    const question = { task: String(number), round: 0, charges: asked.charges };
    const short = await one.answer(question, () => new Uint8Array(0), async () => {}, asked.time).then(() => null, (error) => error.remaining);
    const agrees = asked.admitted ? short === null : short && short.left === asked.left && short.returns === asked.returns && one.remaining(asked.time).length > asked.limit;
    count("admissions", agrees, () => `${JSON.stringify(asked)} gives ${JSON.stringify(short)}`);
  }
}

const kinds = { reports, bad_reports: badReports, bad_documents: badDocuments, thresholds, memory_vectors: memory, ledger_vectors: ledger };
for (const file of files) {
  const content = JSON.parse(await readFile(file, "utf8"));
  const run = kinds[basename(file, ".json").replace(/^large_/, "")];
  for (const vector of Array.isArray(content) ? content : [content]) await run(vector);
}
if (faults.length > 0) throw new Error(faults.join("\n"));
console.log(JSON.stringify(counts));
