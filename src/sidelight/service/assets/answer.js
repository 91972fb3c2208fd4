/* The questionnaire of a task: answers are randomised here, shown, and only then sent. */
import { Client, IndexedStore, Ledger, limitOf, randomBytes, toHex } from "./client.js";

const LIMIT = 5; // what this browser gives away in a year, over all who ask from this address
const PERSON = "sidelight device";
const $ = (id) => document.getElementById(id);
const say = (text) => { $("status").textContent = text; };
/** How sure somebody can be at most, for odds of `factor` to 1: rounded up, and never to certainty. */
function atMost(factor) {
  const unsure = 100 / (1 + factor);
  const digits = Math.max(0, Math.ceil(-Math.log10(unsure)));
  if (digits > 6) return "practically 100 %";
  return `${(100 - Math.floor(unsure * 10 ** digits) / 10 ** digits).toFixed(digits)} %`;
}

/** The device's own random name, which never leaves it: it decides in which of two phases it takes part. */
function person() {
  let name = localStorage.getItem(PERSON);
  if (name === null) {
    name = toHex(randomBytes(16));
    localStorage.setItem(PERSON, name);
  }
  return name;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function describe(task) {
  $("purpose").textContent = task.purpose;
  $("contact").textContent = `Asked by ${task.contact}. The task's name is ${task.id}.`;
  document.title = `Sidelight: ${task.purpose.slice(0, 60)}`;
}

function promise(round, task, left) {
  const { epsilon } = round.protocol;
  const { smallestCrowd, retentionDays, keepsReports } = task.terms;
  const lines = [
    `Between any two sets of answers, your report shifts the odds by a factor of at most ${Math.exp(epsilon).toFixed(2)} ` +
      `(a budget of ${epsilon.toFixed(3)}): who held two for equally likely is at most ${atMost(Math.exp(epsilon))} sure afterwards.`,
    `Figures of fewer than ${smallestCrowd} people are shown to nobody.`,
    keepsReports ? "The reports themselves are kept." : "Reports are added up and not kept.",
    retentionDays === null ? "Sums are kept without an end." : `Sums are dropped ${retentionDays} days after publication.`,
    `This browser gives away at most ${LIMIT} in a year, over all questions from this address; ${left} are left.`,
  ];
  $("promises").replaceChildren(...lines.map((line) => element("li", line)));
}

/** What a task asks that this page cannot answer: shown, and said plainly; nothing is sent. */
async function explain(id, error) {
  const answer = await fetch(`/v1/tasks/${id}`, { credentials: "omit" });
  const task = answer.ok ? await answer.json() : {};
  const released = task.panel?.plan.release.filter(({ mechanism }) => mechanism !== "withheld");
  const asked = task.labels === undefined ? released?.map((item) => ({ ...item, name: item.attribute })) : [...task.labels.attribute, task.labels.label];
  if (asked === undefined) throw error;
  describe({ ...task, id });
  const last = task.labels === undefined ? "" : ` A model of ${task.labels.label.name} is learnt from the others.`;
  const lines = [`It asks for ${asked.map(({ name }) => name).join(", ")}.${last}`];
  if (task.labels?.protocol === "labeldp") lines.push(`Sent as they are, without noise: ${task.labels.attribute.map(({ name }) => name).join(", ")}.`);
  $("promises").replaceChildren(...lines.map((line) => element("li", line)));
  $("questions").replaceChildren(...asked.map((attribute, index) => choices(attribute, index, true)));
  $("form").querySelector("h2").textContent = "What it asks";
  $("form").querySelector("button").hidden = true;
  $("form").hidden = false;
  const kind = task.labels === undefined ? "a panel, whose devices remember their responses" : "a label collection";
  $("privacy").nextElementSibling.textContent = "Nothing: what is shown here cannot be answered from this page.";
  $("form").before($("status"));
  say(`This is ${kind}. This page cannot make its reports; the Python client (sidelight.Client) can. Nothing was sent.`);
}

function choices(attribute, index, isShownOnly = false) {
  const group = element("fieldset", null, isShownOnly === true ? { disabled: "" } : {});
  group.append(element("legend", attribute.name));
  attribute.values.forEach((value, code) => {
    const id = `q${index}-${code}`;
    const input = element("input", null, { type: "radio", name: `q${index}`, id, value: String(code), required: "" });
    const line = element("div", null, { class: "choice" });
    line.append(input, element("label", value, { for: id }));
    group.append(line);
  });
  return group;
}

function chosen(round) {
  const data = new FormData($("form"));
  return Object.fromEntries(
    round.protocol.schema.map((attribute, index) => [attribute.name, attribute.values[Number(data.get(`q${index}`))]]),
  );
}

/** Show the one report of a round; it is made from the answers unless it was made before. */
async function prepare(client, round, answers, kept = null) {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? undefined;
  const bytes = kept ?? (await client.reserve(round, answers, token));
  $("bytes").textContent = new TextDecoder().decode(bytes);
  $("said").textContent = "It was made from your answers and from chance. Mixing again would tell more, so it is done once.";
  $("form").hidden = true;
  $("preview").hidden = false;
  $("send").focus();
  say("Nothing has been sent yet.");
  $("send").onclick = () => guarded(async () => {
    $("send").disabled = $("withdraw").disabled = true;
    const outcome = await client.answer(round, answers, token);
    $("preview").hidden = true;
    say(spoken(outcome));
  });
}

function spoken(outcome) {
  if (outcome === null || ["accepted", "repeated"].includes(outcome.status)) return "Thank you: your report is counted.";
  return `Your report was not counted: ${outcome.reason || outcome.status}.`;
}

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    say(error.name === "AwayError" ? "The service cannot be reached. What was made is kept; open this page again later." : error.message);
    $("send").disabled = false;
  }
}

async function shown(client, ledger, round) {
  const question = client.question(round);
  const before = ledger.answers.find((item) => item.question.task === question.task && item.question.round === question.round);
  $("withdraw").onclick = () => guarded(async () => {
    await ledger.withdraw(question);
    $("preview").hidden = true;
    say("Nothing was sent, and nothing was spent.");
  });
  if (before?.state === "reserved") {
    await prepare(client, round, {}, before.report);
    return;
  }
  if (before !== undefined) {
    say(before.state === "acknowledged" ? "You have answered this question. Thank you." : "You chose not to send a report.");
    return;
  }
  ledger.check(question);
  $("questions").replaceChildren(...round.protocol.schema.map((attribute, index) => choices(attribute, index)));
  $("form").hidden = false;
  say("");
  $("form").onsubmit = (event) => {
    event.preventDefault();
    guarded(() => prepare(client, round, chosen(round)));
  };
}

await guarded(async () => {
  const store = await IndexedStore.open();
  const ledger = await Ledger.open(store, person(), [limitOf(LIMIT, { kind: "year" })]);
  const client = new Client(location.origin, ledger);
  // What a person has not agreed to send stays here.
  if (ledger.pending.length > 0 && ledger.pending.every(({ state }) => state === "sent")) await client.resume();
  const id = location.pathname.split("/").at(-1);
  const task = await client.task(id).catch((error) => explain(id, error));
  if (task === undefined) return;
  describe(task);
  const round = await client.openRound(task);
  if (round === null) {
    say("Nothing is asked of this device now.");
    return;
  }
  promise(round, task, (ledger.remaining()[0].left / 1e9).toFixed(3));
  await shown(client, ledger, round);
});
document.documentElement.dataset.drawn = "yes";
