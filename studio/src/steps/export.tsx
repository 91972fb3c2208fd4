// Last step: everything as files, and the command lines that do the same.
import { useEffect, useState } from "preact/hooks";
import { exported } from "../state/server.ts";
import { commands, plan, restore, said, state } from "../state/store.ts";
import { PlanTabs } from "./plans.tsx";

const FILES = [
  ["plan", "Plan", "What is released with which budget, and the limits: for every command of Sidelight."],
  ["project", "Project file", "Table, secrets, adversary and plan in one file that can be run again."],
  ["report", "Report", "The audit as one page to read, print and hand on."],
  ["notebook", "Notebook", "The same in Python, to go on from."],
  ["schema", "Schema", "Types and bins of the columns, with your corrections."],
  ["state", "State of the studio", "All plans and settings, without the data: share it, or open it again."],
] as const;

/** The step "Export". */
export function Export() {
  const [now, active] = [state.value, plan.value];
  if (now === null || active === null) return null;
  return (
    <>
      <header>
        <p class="eyebrow">Step 7</p>
        <h1>Take it with you</h1>
        <p class="lead">The files of the command line: audited there, the plan gives the same figures to the last digit.</p>
        <PlanTabs />
      </header>
      <ul class="files">
        {FILES.map(([form, title, words]) => (
          <li key={form} class="card">
            <h2>{title}</h2>
            <p class="muted">{words}</p>
            <a class="button" href={exported(form, active.id)} download aria-label={`Save ${title.toLowerCase()} of ${active.name}`}>
              Save
            </a>
          </li>
        ))}
      </ul>
      <CommandLines id={active.id} revision={now.revision} />
      <Import />
    </>
  );
}

function CommandLines({ id, revision }: { id: string; revision: number }) {
  const [text, setText] = useState("");
  useEffect(() => {
    let isCurrent = true;
    commands(id).then(
      (lines) => isCurrent && setText(lines),
      () => isCurrent && setText(""),
    );
    return () => {
      isCurrent = false;
    };
  }, [id, revision]);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    said.value = "The command lines are copied.";
  };
  return (
    <section class="card" aria-labelledby="commands">
      <h2 id="commands">The command lines that do the same</h2>
      <pre tabIndex={0} aria-label="Command lines">{text || "…"}</pre>
      <div class="buttons">
        <button type="button" class="small" disabled={text === ""} onClick={() => void copy()}>
          Copy
        </button>
        <a class="button small" href={exported("commands", id)} download>
          Save as a script
        </a>
      </div>
    </section>
  );
}

function Import() {
  const [file, setFile] = useState<File | null>(null);
  return (
    <section class="card" aria-labelledby="import">
      <h2 id="import">Open a state</h2>
      <p class="muted">A state of the studio that was saved for the same table. It takes the place of this one; undo brings this one back.</p>
      <div class="controls">
        <input type="file" aria-label="State file" accept=".json,application/json" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
        <button type="button" class="small" disabled={file === null} onClick={() => file && void restore(file)}>
          Open
        </button>
      </div>
    </section>
  );
}
