// First step: what the table holds, and what of that was read wrongly.
import { useState } from "preact/hooks";
import type { Column } from "../messages.ts";
import { Choice, Field, Long, NumberBox, Search } from "../parts/fields.tsx";
import { count, many, percent } from "../state/format.ts";
import { change, isAttribute, state } from "../state/store.ts";

const KINDS: Record<Column["kind"], string> = {
  categorical: "categories",
  ordinal: "ordered",
  numeric: "numbers",
  date: "dates",
  time: "times of day",
  identifier: "identifier, set aside",
  ignored: "ignored",
};
const MISSING: Record<Column["missing"], string> = {
  absent: "there are none",
  value: "count as a value of their own",
  drop: "leave the row out",
};
const SHOWN = { all: "all columns", noted: "with remarks", aside: "set aside" } as const;

/** The step "Columns". */
export function Columns() {
  const now = state.value;
  const [wanted, setWanted] = useState("");
  const [shown, setShown] = useState<keyof typeof SHOWN>("all");
  if (now === null) return null;
  const { table, columns } = now;
  const items = columns.filter(
    (column) =>
      column.name.toLowerCase().includes(wanted.toLowerCase()) &&
      (shown === "all" || (shown === "noted" ? column.notes.length > 0 : !isAttribute(column))),
  );
  return (
    <>
      <header>
        <p class="eyebrow">Step 1</p>
        <h1>What is in {table.name}?</h1>
        <p class="lead">
          {many(table.rows, "row")}, {many(table.columns, "column")}
          {table.set_aside > 0 && `, ${table.set_aside} of them set aside`}. Types and bins were inferred; correct what is
          wrong. Leakage depends on how finely values are told apart.
        </p>
        {table.notes.map((note) => (
          <p key={note} class="note">
            {note}
          </p>
        ))}
      </header>
      <div class="toolbar">
        <Search label="Search columns" value={wanted} onValue={setWanted} />
        <Choice label="Which columns" value={shown} options={Object.entries(SHOWN) as [keyof typeof SHOWN, string][]} onValue={setShown} />
        <span class="muted" role="status">
          {items.length} of {columns.length}
        </span>
      </div>
      <Long items={items} noun="column" row={(column) => <ColumnRow key={column.name} column={column} />} />
    </>
  );
}

function ColumnRow({ column }: { column: Column }) {
  const [isOpen, setOpen] = useState(false);
  const { name, kind, bins, missing } = column;
  const set = (part: { kind?: Column["kind"]; bins?: number | null; missing?: Column["missing"] }): void =>
    change([{ change: "column", name, kind, bins, missing: column.missing_share > 0 ? missing : null, ...part }]);
  return (
    <li class={isAttribute(column) ? "card row column" : "card row column aside"}>
      <div class="head">
        <h2>{name}</h2>
        <span class="muted small">
          {isAttribute(column) ? many(column.size, "value") : KINDS[kind]}
          {column.missing_share > 0 && `, ${percent(column.missing_share)} missing`}
          {column.is_stated && ", corrected"}
        </span>
      </div>
      <Histogram column={column} />
      <div class="controls">
        <Field label="Type">
          <Choice label={`Type of ${name}`} value={kind} options={choices(column)} onValue={(value) => set({ kind: value, bins: null })} />
        </Field>
        {bins !== null && (
          <Field label="Bins">
            <NumberBox label={`Bins of ${name}`} value={bins} min={2} max={1000} whole onValue={(value) => set({ bins: value })} />
          </Field>
        )}
        {isAttribute(column) && column.missing_share > 0 && (
          <Field label="Missing values">
            <Choice
              label={`Missing values of ${name}`}
              value={missing}
              options={[...new Set([missing, "value", "drop"] as const)].map((value) => [value, MISSING[value]] as const)}
              onValue={(value) => set({ missing: value })}
            />
          </Field>
        )}
        {(column.values.length > 0 || column.notes.length > 0) && (
          <button type="button" class="plain small" aria-expanded={isOpen} aria-label={`${isOpen ? "Hide" : "Show"} values of ${name}`} onClick={() => setOpen(!isOpen)}>
            {isOpen ? "Hide values" : "Show values"}
          </button>
        )}
      </div>
      {column.notes.map((note) => (
        <p key={note} class="note small">
          {note}
        </p>
      ))}
      {isOpen && <Values column={column} />}
    </li>
  );
}

const choices = ({ kind, kinds }: Column): [Column["kind"], string][] =>
  [...new Set([kind, ...kinds])].map((name) => [name, KINDS[name]]);

const BARS = 60;

/** The shares of values as small bars; numbers beside them are in the list of values. */
function Histogram({ column }: { column: Column }) {
  const values = column.values.slice(0, BARS);
  if (values.length === 0) return null;
  const top = Math.max(...values.map(({ share }) => share), 1e-9);
  return (
    <svg class="histogram" viewBox={`0 0 ${values.length} 10`} preserveAspectRatio="none" aria-hidden="true">
      {values.map(({ share }, place) => (
        <rect key={place} x={place + 0.08} width={0.84} y={10 - (10 * share) / top} height={(10 * share) / top} />
      ))}
    </svg>
  );
}

function Values({ column }: { column: Column }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label={`Values of ${column.name}, with counts`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Value</th>
            <th scope="col" class="right">Rows</th>
            <th scope="col" class="right">Share</th>
          </tr>
        </thead>
        <tbody>
          {column.values.map(({ label, count: rows, share }) => (
            <tr key={label}>
              <td>{label}</td>
              <td class="right">{count(rows)}</td>
              <td class="right">{percent(share)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {column.unlisted > 0 && <p class="muted small">and {many(column.unlisted, "further value")}</p>}
    </div>
  );
}
