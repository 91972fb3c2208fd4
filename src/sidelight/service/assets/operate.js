/* The operator's page: tasks, rounds, arrivals, figures with intervals; the key stays in this page's memory.
 *
 * What cannot have changed is not asked for again: documents never change, nor does a closed round; figures of an open
 * one are worked out anew only when reports have come. */
const EVERY = 5000;
const NEXT = { draft: "open", open: "close", closed: "publish" };
const $ = (id) => document.getElementById(id);
const documents = new Map();
const drawn = new Map();
let key = "";
let isDrawing = false;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

async function call(path, method = "GET") {
  const answer = await fetch(path, { method, headers: { Authorization: `Bearer ${key}` }, credentials: "omit", cache: "no-store" });
  const body = (answer.headers.get("content-type") ?? "").includes("json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw Object.assign(new Error(body.detail ?? `The service answered ${answer.status}.`), { status: answer.status });
  return body;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const bounded = (share) => (typeof share === "number" ? `at most ${percent(share)}` : "without a bound");

function tableOf(titles, rows, numbers = 1) {
  const table = element("table", null);
  const head = element("tr", null);
  head.append(...titles.map((title) => element("th", title, { scope: "col" })));
  const lines = rows.map((cells) => {
    const line = element("tr", null);
    line.append(...cells.map((cell, place) => element("td", cell, place > numbers ? { class: "number" } : {})));
    return line;
  });
  table.append(head, ...lines);
  return table;
}

function wide(...parts) {
  const made = element("div", null, { class: "wide" });
  made.append(...parts);
  return made;
}

/** Estimates of a round of whole records. */
function recordFigures(said) {
  const titles = ["attribute", "value", "share", `interval (${percent(said.confidence)})`, "moved by 1 % forged"];
  const rows = said.estimates.map((row) => [
    row.attribute, row.value, percent(row.frequency), `${percent(row.lower)} to ${percent(row.upper)}`, bounded(row.forged),
  ]);
  return wide(element("p", said.usefulness.headline, { class: "small" }), tableOf(titles, rows));
}

/** What a round of a label collection tells, and what the model would be if it were closed now. */
function labelFigures(said) {
  const titles = ["question", "people", `goes with ${said.label}`, "error of a cell", "moved by 1 % forged"];
  const rows = said.tables.map((table) => {
    if (table.shares === null) return [table.attribute, "0", "nothing yet", "", ""];
    const error = Math.max(...table.standard_errors.flat());
    const told = table.chance < 0.01 ? `${table.signal.toFixed(1)} times the noise` : "no more than noise would";
    return [table.attribute, String(table.people), told, `up to ${percent(error)}`, bounded(table.forged)];
  });
  return wide(element("p", modelSoFar(said), { class: "small" }), tableOf(titles, rows, 0));
}

function modelSoFar({ learnt, label, kind }) {
  if (learnt === null) return "This round tells how unevenly values are spread; the model is learnt from the next ones.";
  const commonest = `The commonest value of ${label} has a share of ${percent(learnt.commonest)}`;
  if (kind === "bayes") return `${commonest}: a model is worth something if it is right more often than that on records of your own.`;
  const grown = `After this round the tree has ${learnt.leaves} ${learnt.leaves === 1 ? "leaf" : "leaves"}, ${learnt.open} of them to be asked about again`;
  return `${grown}. ${commonest}; by its own reports, which flatter it, the tree is right in ${percent(learnt.own_accuracy)}.`;
}

async function figures(path) {
  try {
    const said = await call(`${path}/estimates`);
    return said.tables === undefined ? recordFigures(said) : labelFigures(said);
  } catch (error) {
    return element("p", error.message, { class: "small failed" });
  }
}

function stepButton(path, found) {
  const step = NEXT[found.state];
  const button = element("button", `${step[0].toUpperCase()}${step.slice(1)} round ${found.round}`, { type: "button" });
  button.onclick = () => guarded(async () => {
    if (step !== "open" && !window.confirm(`${button.textContent}? This cannot be undone.`)) return;
    await call(`${path}/${step}`, "POST");
    await draw();
  });
  return button;
}

/** Return what was drawn under a name if its mark is the same; else draw it anew. What failed is tried again. */
async function keptOr(name, mark, make) {
  if (drawn.get(name)?.mark === mark) return drawn.get(name).made;
  const made = await make();
  if (!made.matches(".failed") && made.querySelector(".failed") === null) drawn.set(name, { mark, made });
  return made;
}

async function roundOf(task, found, crowd, opensItself) {
  const path = `/v1/tasks/${task}/rounds/${found.round}`;
  const settled = drawn.get(path)?.mark;
  const state = found.is_retired ? "retired" : found.state;
  if (state !== "open" && settled?.startsWith(`${state} `)) return drawn.get(path).made;
  const { people } = ["draft", "retired"].includes(state) ? { people: 0 } : await call(`${path}/arrivals`);
  return keptOr(path, `${state} ${people}`, async () => {
    const made = element("section", null);
    made.append(element("h3", `Round ${found.round}: ${state}, ${people} report${people === 1 ? "" : "s"}`));
    if (opensItself && found.state === "draft" && found.round > 1) made.append(element("p", "The service opens it when the round before is closed.", { class: "small" }));
    else if (NEXT[found.state] !== undefined) made.append(stepButton(path, found));
    if (["draft", "retired"].includes(state)) return made;
    made.append(people < crowd ? element("p", `Figures are shown from ${crowd} people on.`, { class: "small" }) : await figures(path));
    return made;
  });
}

/** The levels of a panel over its rounds, a column each, with the changes that are seen. */
async function overTime(task) {
  try {
    const said = await call(`/v1/tasks/${task}/estimates`);
    const rounds = said.rounds.map(({ round }) => round);
    const names = [...new Map(said.levels.map((row) => [JSON.stringify([row.attribute, row.value]), row])).values()];
    const level = ({ attribute, value }, round) => {
      const row = said.levels.find((one) => one.attribute === attribute && one.value === value && one.round === round);
      return row === undefined ? "" : `${percent(row.frequency)} (${percent(row.lower)} to ${percent(row.upper)})`;
    };
    const rows = names.map((row) => [row.attribute, row.value, ...rounds.map((round) => level(row, round))]);
    const seen = said.changes.filter((row) => row.is_seen).map((row) =>
      `${row.attribute} = ${row.value}: ${row.change > 0 ? "up" : "down"} by ${percent(Math.abs(row.change))} from round ${row.first} to round ${row.last}`);
    const made = element("section", null);
    made.append(element("h3", "Over time"), wide(tableOf(["attribute", "value", ...rounds.map((round) => `round ${round}`)], rows)));
    made.append(element("p", seen.length > 0 ? `Changes that chance does not explain: ${seen.join("; ")}.` : "No change stands out from the noise.", { class: "small" }));
    return made;
  } catch (error) {
    return element("p", error.message, { class: "small failed" });
  }
}

function modelButton(task) {
  const made = element("button", "Download the model", { type: "button", class: "plain" });
  made.onclick = () => guarded(async () => {
    const text = JSON.stringify(await call(`/v1/tasks/${task}/model`), null, 2);
    const link = element("a", null, { download: `${task.slice(0, 12)}-model.json` });
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.click();
    $("status").textContent = "The model is in your downloads; `sidelight.learning.read_model` reads it.";
  });
  return made;
}

/** The first rounds that are drafts are drawn; of many more only a line. */
const shownRounds = (rounds) => rounds.filter(({ state, round }) => state !== "draft" || round === 1 || rounds[round - 2].state !== "draft");

async function taskOf(id) {
  if (!documents.has(id)) documents.set(id, await call(`/v1/tasks/${id}`));
  const [task, state] = [documents.get(id), await call(`/v1/tasks/${id}/state`)];
  const made = element("article", null);
  const page = task.labels === undefined && task.panel === undefined ? "The questionnaire" : "What is asked; sidelight.Client answers it, no browser can";
  made.append(element("h2", task.purpose), element("p", id, { class: "small" }), element("a", page, { href: `/t/${id}` }));
  const shown = shownRounds(state.rounds);
  made.append(...(await Promise.all(shown.map((found) => roundOf(id, found, task.terms.smallest_crowd, task.labels !== undefined)))));
  const more = state.rounds.length - shown.length;
  if (more > 0) made.append(element("p", more === 1 ? "1 more round is a draft." : `${more} more rounds are drafts.`, { class: "small" }));
  const marks = shown.map(({ round }) => drawn.get(`/v1/tasks/${id}/rounds/${round}`)?.mark).join(", ");
  if (task.panel !== undefined && shown.some((found) => found.state !== "draft")) made.append(await keptOr(`${id} over time`, marks, () => overTime(id)));
  if (task.labels !== undefined && state.rounds.every((found) => ["closed", "published"].includes(found.state))) made.append(modelButton(id));
  return made;
}

async function draw() {
  const { tasks } = await call("/v1/tasks");
  $("tasks").replaceChildren(...(await Promise.all(tasks.map(taskOf))));
  const counted = [...(await call("/metrics")).matchAll(/^sidelight_reports_total\{answer="([^"]+)"\} (\S+)$/gm)];
  $("counts").replaceChildren(...counted.map(([, word, count]) => element("li", `${word}: ${Number(count)}`)));
  $("answers").hidden = false;
  $("door").hidden = true;
  $("status").textContent = tasks.length ? "" : "There is no task yet: POST one to /v1/tasks.";
  document.documentElement.dataset.drawn = "yes";
}

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    $("status").textContent = error.message;
    if (error.status === 401) $("door").hidden = false;
  }
}

$("door").onsubmit = (event) => {
  event.preventDefault();
  key = $("key").value;
  drawn.clear();
  guarded(draw);
};
setInterval(async () => {
  if (!key || isDrawing || document.hidden || !$("door").hidden || $("tasks").contains(document.activeElement)) return;
  isDrawing = true; // a slow answer is waited for, not asked for again
  await guarded(draw);
  isDrawing = false;
}, EVERY);
