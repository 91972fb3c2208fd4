// The frame around the steps: the bar above, the rail of steps, what is wrong, and what a screen reader says.
import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { State } from "./messages.ts";
import { OUTCOMES, verdict } from "./parts/secrets.tsx";
import { Tip } from "./parts/tip.tsx";
import { count, many } from "./state/format.ts";
import { change, figures, isBusy, link, problem, said, saved, state, step, STEPS, type StepName } from "./state/store.ts";
import { Adversary } from "./steps/adversary.tsx";
import { Budgets } from "./steps/budgets.tsx";
import { Columns } from "./steps/columns.tsx";
import { Compare } from "./steps/compare.tsx";
import { Export } from "./steps/export.tsx";
import { Secrets } from "./steps/secrets.tsx";
import { Try } from "./steps/try.tsx";

const VIEWS = { columns: Columns, secrets: Secrets, adversary: Adversary, budgets: Budgets, compare: Compare, try: Try, export: Export };
const TITLES: Record<StepName, string> = {
  columns: "Columns",
  secrets: "Secrets",
  adversary: "Adversary",
  budgets: "Budgets",
  compare: "Compare",
  try: "Try",
  export: "Export",
};

/** Say in a few words where a step stands. */
function hint(name: StepName, now: State): string {
  const { settings, table, plans } = now;
  const shown = figures.value;
  switch (name) {
    case "columns":
      return `${count(table.columns)} columns`;
    case "secrets":
      return settings.secrets.length === 0 ? "every attribute" : many(settings.secrets.length, "secret");
    case "adversary":
      return settings.delta === null ? "worst case" : `delta ${settings.delta}`;
    case "budgets":
      return shown ? OUTCOMES[shown.outcome].title : "";
    case "compare":
      return many(plans.length, "plan");
    case "try":
      return "collect, attack";
    case "export":
      return "files, commands";
  }
}

/** The whole page. */
export function App() {
  const now = state.value;
  useEffect(() => follow(), []);
  return (
    <>
      <a class="skip" href="#main" onClick={toMain}>
        Skip to the content
      </a>
      <Bar now={now} />
      <Troubles />
      {now && <Banner now={now} />}
      <div class="frame">
        {now && <Rail now={now} />}
        <main id="main" tabIndex={-1}>
          {now ? <Current /> : <Opening />}
        </main>
      </div>
      <Tip />
      <div class="hidden" role="status" aria-live="polite">
        {said.value}
      </div>
    </>
  );
}

function Opening() {
  return (
    <div class="opening">
      <h1>Sidelight studio</h1>
      <p class="muted">{link.value === "closed" ? "Open the address that the terminal shows." : "The table is being read."}</p>
    </div>
  );
}

/** The step that is shown; a new one takes the focus, so that reading starts at its beginning. */
function Current() {
  const name = step.value;
  const first = useRef(true);
  useEffect(() => {
    document.title = `${TITLES[name]}: Sidelight studio`;
    if (!first.current) toMain();
    first.current = false;
  }, [name]);
  const View = VIEWS[name];
  const next = STEPS[STEPS.indexOf(name) + 1];
  return (
    <>
      <View key={name} />
      {next && (
        <p class="next">
          <a class="button primary" href={`./#${next}`}>
            Next: {TITLES[next]}
          </a>
        </p>
      )}
    </>
  );
}

function toMain(event?: Event): void {
  event?.preventDefault();
  scrollTo(0, 0);
  document.getElementById("main")?.focus({ preventScroll: true });
}

function Bar({ now }: { now: State | null }) {
  const { undo = null, redo = null } = now?.history ?? {};
  return (
    <header class="bar">
      <span class="brand">
        Sidelight <span>studio</span>
      </span>
      {now && (
        <span class="muted table">
          {now.table.name}, {many(now.table.rows, "row")}
        </span>
      )}
      {now && (
        <div class="buttons" role="group" aria-label="History">
          <button type="button" class="plain small" disabled={undo === null} title={undo === null ? undefined : `Undo: ${undo} (Ctrl+Z)`} onClick={() => change([{ change: "undo" }])}>
            Undo<span class="hidden">{undo && `: ${undo}`}</span>
          </button>
          <button type="button" class="plain small" disabled={redo === null} title={redo === null ? undefined : `Redo: ${redo} (Ctrl+Shift+Z)`} onClick={() => change([{ change: "redo" }])}>
            Redo<span class="hidden">{redo && `: ${redo}`}</span>
          </button>
          <Keys />
        </div>
      )}
      {now && <Saved revision={now.revision} />}
    </header>
  );
}

/** Whether what is on screen is also in the file. */
function Saved({ revision }: { revision: number }) {
  const { revision: kept, problem: why } = saved.value;
  const words = why ? "Not saved" : link.value !== "open" ? "Not connected" : kept < revision || isBusy.value ? "Saving" : "Saved";
  return (
    <span class={`saved ${words === "Saved" ? "" : "pending"}`} title={why || undefined}>
      <i class="dot" aria-hidden="true" />
      {words}
    </span>
  );
}

const KEYS = [
  ["Ctrl+Z", "undo"],
  ["Ctrl+Shift+Z or Ctrl+Y", "redo"],
  ["Alt+1 to Alt+7", "go to a step"],
  ["Arrow keys", "move a slider, or from cell to cell of the heat map"],
  ["Page Up, Page Down", "move a slider in large steps"],
  ["Escape", "take a tip away"],
] as const;

function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button type="button" class="plain small keys-button" aria-haspopup="dialog" onClick={() => dialog.current?.showModal()}>
        Keys
      </button>
      <dialog ref={dialog} aria-labelledby="keys">
        <h2 id="keys">Keys</h2>
        <dl class="keys">
          {KEYS.map(([key, words]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{words}</dd>
            </div>
          ))}
        </dl>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </dialog>
    </>
  );
}

function Rail({ now }: { now: State }) {
  const rail = useRef<HTMLElement>(null);
  const name = step.value;
  useEffect(() => {
    const link = rail.current?.querySelector<HTMLElement>("[aria-current]");
    if (link && rail.current) rail.current.scrollLeft = link.offsetLeft - rail.current.clientWidth / 2 + link.clientWidth / 2;
  }, [name]);
  return (
    <nav ref={rail} class="rail" aria-label="Steps">
      <ol>
        {STEPS.map((item, place) => (
          <li key={item}>
            <a href={`./#${item}`} aria-current={name === item ? "step" : undefined}>
              <span class="place" aria-hidden="true">
                {place + 1}
              </span>
              <span>
                {TITLES[item]}
                <small class={item === "budgets" && figures.value ? OUTCOMES[figures.value.outcome].class : ""}>{hint(item, now)}</small>
              </span>
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function Banner({ now }: { now: State }) {
  const [isShort, setShort] = useState(false);
  if (!now.banner.is_raw) return null;
  return (
    <aside class="banner" aria-label="About these figures">
      <strong>Raw data</strong> {isShort ? "" : now.banner.text}
      <button type="button" class="plain small" aria-expanded={!isShort} onClick={() => setShort(!isShort)}>
        {isShort ? "Why this matters" : "Shorter"}
      </button>
    </aside>
  );
}

function Troubles() {
  const words =
    link.value === "closed"
      ? "This window has lost its key: the studio was started anew. Open the address that the terminal shows; nothing but the last second is lost."
      : link.value === "lost"
        ? "The studio’s server does not answer. The page goes on by itself as soon as it does."
        : problem.value;
  return (
    <div role="alert" class={words ? "trouble" : "hidden"}>
      {words && <span>{words}</span>}
      {problem.value && link.value === "open" && (
        <button type="button" class="plain small" onClick={() => (problem.value = "")}>
          Close
        </button>
      )}
    </div>
  );
}

const REST = 900;

/** Let the address name the step, keys work everywhere, and verdicts be said once figures have come to rest. */
function follow(): () => void {
  const read = (): void => {
    const name = location.hash.slice(1) as StepName;
    if (STEPS.includes(name)) step.value = name;
  };
  read();
  addEventListener("hashchange", read);
  addEventListener("keydown", onKey);
  const stopAddress = effect(() => {
    if (location.hash !== `#${step.value}`) history.pushState(null, "", `#${step.value}`);
  });
  let timer = 0;
  let last = "";
  const stopSaying = effect(() => {
    const words = figures.value && !isBusy.value ? verdict(figures.value) : "";
    clearTimeout(timer);
    if (words === "" || words === last) return;
    timer = window.setTimeout(() => (said.value = last = words), REST);
  });
  return () => {
    removeEventListener("hashchange", read);
    removeEventListener("keydown", onKey);
    clearTimeout(timer);
    stopAddress();
    stopSaying();
  };
}

/** Whether somebody is typing; a number box in which nothing is pending is like any other control. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLTextAreaElement ||
  (target instanceof HTMLInputElement && ["text", "search"].includes(target.type) && target.dataset["settled"] !== "yes");

/** Keys that work everywhere; where somebody is typing, undo is the browser's. */
function onKey(event: KeyboardEvent): void {
  const place = event.altKey && !event.ctrlKey && !event.metaKey ? Number(event.code.replace("Digit", "")) : 0;
  const name = STEPS[place - 1];
  if (name !== undefined) {
    event.preventDefault();
    step.value = name;
    return;
  }
  if (!(event.ctrlKey || event.metaKey) || event.altKey || isTyping(event.target)) return;
  const key = event.key.toLowerCase();
  if (key !== "z" && key !== "y") return;
  event.preventDefault();
  const way = key === "y" || event.shiftKey ? "redo" : "undo";
  if (state.value?.history[way] != null) change([{ change: way }]);
}
