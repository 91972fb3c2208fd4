// Second step: what must not be learnt, and how much of it may leak.
import { useState } from "preact/hooks";
import type { Secret } from "../messages.ts";
import { Choice, Field, Long, NumberBox, Search } from "../parts/fields.tsx";
import { factor, many } from "../state/format.ts";
import { attributes, change, state } from "../state/store.ts";

const SHOWN = { all: "all attributes", marked: "marked", unmarked: "not marked" } as const;

/** The step "Secrets". */
export function Secrets() {
  const now = state.value;
  const [wanted, setWanted] = useState("");
  const [shown, setShown] = useState<keyof typeof SHOWN>("all");
  if (now === null) return null;
  const { secrets, limit } = now.settings;
  const marked = new Map(secrets.map((secret) => [secret.name, secret]));
  const set = (next: Secret[], all = limit): void => change([{ change: "secrets", secrets: next, limit: all }]);
  const items = attributes.value.filter(
    ({ name }) => name.toLowerCase().includes(wanted.toLowerCase()) && (shown === "all" || marked.has(name) === (shown === "marked")),
  );
  const put = (secret: Secret): void => set(secrets.map((old) => (old.name === secret.name ? secret : old)));
  return (
    <>
      <header>
        <p class="eyebrow">Step 2</p>
        <h1>What must not be learnt?</h1>
        <p class="lead">
          Mark the attributes that people would not want to be guessed. A limit says how much all reports together may say
          about one, in nats: with a limit of 1 the odds of one value against another move by at most {factor(1)}.
        </p>
      </header>
      <section class="card" aria-labelledby="limit-for-all">
        <h2 id="limit-for-all">The limit for all</h2>
        <Field label="Limit in nats" note={limit === null ? "Without a limit, leakage is shown but nothing is judged." : `Odds move by at most ${factor(limit)}.`}>
          <NumberBox label="Limit for all secrets" value={limit} empty="none" max={699} onValue={(value) => set(secrets, value)} />
        </Field>
        <div class="buttons" role="group" aria-label="Usual limits">
          {[0.5, 1, 2].map((value) => (
            <button key={value} type="button" class="small" aria-pressed={limit === value} onClick={() => set(secrets, value)}>
              {value} nats ({factor(value)})
            </button>
          ))}
          <button type="button" class="plain small" disabled={limit === null} onClick={() => set(secrets, null)}>
            No limit
          </button>
        </div>
      </section>
      <div class="toolbar">
        <Search label="Search attributes" value={wanted} onValue={setWanted} />
        <Choice label="Which attributes" value={shown} options={Object.entries(SHOWN) as [keyof typeof SHOWN, string][]} onValue={setShown} />
        <button type="button" class="plain small" disabled={secrets.length === 0} onClick={() => set([])}>
          Unmark all
        </button>
        <span class="muted" role="status">
          {secrets.length === 0 ? "Nothing is marked, so every attribute counts as a secret." : `${many(secrets.length, "secret")} marked`}
        </span>
      </div>
      <Long
        items={items}
        noun="attribute"
        row={({ name, size }) => (
          <SecretRow
            key={name}
            name={name}
            size={size}
            secret={marked.get(name) ?? null}
            common={limit}
            onMark={(isMarked) => set(isMarked ? [...secrets, { name, limit: null, reason: "" }] : secrets.filter((old) => old.name !== name))}
            onSet={put}
          />
        )}
      />
    </>
  );
}

interface RowProps {
  name: string;
  size: number;
  secret: Secret | null;
  common: number | null;
  onMark: (isMarked: boolean) => void;
  onSet: (secret: Secret) => void;
}

function SecretRow({ name, size, secret, common, onMark, onSet }: RowProps) {
  const limit = secret?.limit ?? common;
  return (
    <li class="card row secret">
      <label class="check">
        <input type="checkbox" checked={secret !== null} onChange={(event) => onMark(event.currentTarget.checked)} />
        <b>{name}</b> <span class="muted small">{many(size, "value")}</span>
      </label>
      {secret && (
        <div class="controls">
          <Field label="Limit" note={limit === null ? "no limit" : `odds ${factor(limit)} at most`}>
            <NumberBox
              label={`Limit of ${name}`}
              value={secret.limit ?? null}
              empty={common === null ? "none" : String(common)}
              max={699}
              onValue={(value) => onSet({ ...secret, limit: value })}
            />
          </Field>
          <Field label="Why">
            <input
              type="text"
              aria-label={`Why ${name} is secret`}
              value={secret.reason ?? ""}
              maxLength={500}
              onChange={(event) => onSet({ ...secret, reason: event.currentTarget.value })}
            />
          </Field>
        </div>
      )}
    </li>
  );
}
