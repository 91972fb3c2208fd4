/* The operator's page: tasks, rounds, arrivals, figures with intervals; the key stays in this page's memory. */
const EVERY = 5000;
const NEXT = { draft: "open", open: "close", closed: "publish" };
const $ = (id) => document.getElementById(id);
let key = "";

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

async function figures(path) {
  try {
    const said = await call(`${path}/estimates`);
    const table = element("table", null);
    const head = element("tr", null);
    const titles = ["attribute", "value", "share", `interval (${percent(said.confidence)})`, "moved by 1 % forged"];
    head.append(...titles.map((title) => element("th", title, { scope: "col" })));
    const rows = said.estimates.map((row) => {
      const line = element("tr", null);
      const forged = typeof row.forged === "number" ? `at most ${percent(row.forged)}` : "without a bound";
      const cells = [row.attribute, row.value, percent(row.frequency), `${percent(row.lower)} to ${percent(row.upper)}`, forged];
      line.append(...cells.map((cell, place) => element("td", cell, place > 1 ? { class: "number" } : {})));
      return line;
    });
    table.append(head, ...rows);
    const wide = element("div", null, { class: "wide" });
    wide.append(element("p", said.usefulness.headline, { class: "small" }), table);
    return wide;
  } catch (error) {
    return element("p", error.message, { class: "small" });
  }
}

async function roundOf(task, found, crowd) {
  const path = `/v1/tasks/${task}/rounds/${found.round}`;
  const made = element("section", null);
  const { people } = found.state === "draft" ? { people: 0 } : await call(`${path}/arrivals`);
  made.append(element("h3", `Round ${found.round}: ${found.is_retired ? "retired" : found.state}, ${people} report${people === 1 ? "" : "s"}`));
  const step = NEXT[found.state];
  if (step !== undefined) {
    const button = element("button", `${step[0].toUpperCase()}${step.slice(1)} round ${found.round}`, { type: "button" });
    button.onclick = () => guarded(async () => {
      if (step !== "open" && !window.confirm(`${button.textContent}? This cannot be undone.`)) return;
      await call(`${path}/${step}`, "POST");
      await draw();
    });
    made.append(button);
  }
  if (found.state === "draft" || found.is_retired) return made;
  made.append(people < crowd ? element("p", `Figures are shown from ${crowd} people on.`, { class: "small" }) : await figures(path));
  return made;
}

async function taskOf(id) {
  const [task, state] = [await call(`/v1/tasks/${id}`), await call(`/v1/tasks/${id}/state`)];
  const made = element("article", null);
  made.append(element("h2", task.purpose), element("p", id, { class: "small" }));
  const link = element("a", "The questionnaire", { href: `/t/${id}` });
  made.append(link, ...(await Promise.all(state.rounds.map((found) => roundOf(id, found, task.terms.smallest_crowd)))));
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
  guarded(draw);
};
setInterval(() => {
  if (key && !document.hidden && $("door").hidden && !$("tasks").contains(document.activeElement)) guarded(draw);
}, EVERY);
