import { act } from "preact/test-utils";
import { describe, expect, it } from "vitest";
import { App } from "../src/app.tsx";
import { cellAfter, cellAt, cellWords, HeatMap, isNamed, largest, layoutOf } from "../src/parts/heatmap.tsx";
import { verdict, worstFirst } from "../src/parts/secrets.tsx";
import type { PlanFigures, SecretFigures, State } from "../src/messages.ts";
import { STEPS as POSITIONS, BUDGETS, toPosition } from "../src/state/scale.ts";
import { Refusal } from "../src/state/server.ts";
import * as store from "../src/state/store.ts";
import { Adversary, deciders } from "../src/steps/adversary.tsx";
import { Budgets, loudest, ordered } from "../src/steps/budgets.tsx";
import { Columns } from "../src/steps/columns.tsx";
import { differing } from "../src/steps/compare.tsx";
import { freshName } from "../src/steps/plans.tsx";
import { Secrets } from "../src/steps/secrets.tsx";
import { drawn, named, press, put, settle } from "./helpers.tsx";
import { figure, mockState } from "./mock.ts";

const figuresOf = (state: State): PlanFigures => state.figures[0] as PlanFigures;

describe("budgets", () => {
  it("sends a moved slider, and shows its value in the box", async () => {
    const { asked } = await drawn(<Budgets />);
    await put("Budget of age", String(toPosition(5, BUDGETS)));
    expect(Number(named("Budget of age as a number").value)).toBeCloseTo(5, 1);
    await settle();
    expect(asked.at(-1)?.changes).toEqual([{ change: "budget", plan: "a", attributes: ["age"], epsilon: expect.closeTo(5, 1) }]);
  });

  it("takes a typed number as it is, and gives back what is none", async () => {
    const { asked } = await drawn(<Budgets />);
    await put("Budget of age as a number", "0.123456");
    await settle();
    expect(asked.at(-1)?.changes[0]).toMatchObject({ epsilon: 0.123456 });
    await put("Budget of age as a number", "much");
    await settle();
    expect(asked).toHaveLength(1);
    expect(named("Budget of age as a number").value).toBe("0.1235");
  });

  it("moves a whole group with one slider", async () => {
    const state = mockState();
    const plan = state.plans[0] as State["plans"][number];
    const { asked } = await drawn(<Budgets />, { ...state, plans: [{ ...plan, groups: [{ name: "work", attributes: ["age", "income"] }] }] });
    await put("Budget of income", String(POSITIONS));
    await settle();
    expect(asked.at(-1)?.changes[0]).toMatchObject({ attributes: ["age", "income"], epsilon: BUDGETS.most });
  });

  it("sets all that the search shows at once, and what is selected before that", async () => {
    const { asked } = await drawn(<Budgets />, mockState(40));
    await put("Search attributes", "attribute 1");
    await put("Budget of all 10 shown as a number", "2");
    await settle();
    expect(asked.at(-1)?.changes[0]).toMatchObject({ epsilon: 2, attributes: expect.arrayContaining(["attribute 10", "attribute 19"]) });
    await press("Select attribute 12");
    await put("Budget of 1 selected as a number", "3");
    await settle();
    expect(asked.at(-1)?.changes[0]).toMatchObject({ epsilon: 3, attributes: ["attribute 12"] });
    await press("Select attribute 12");
  });

  it("withholds, and says that in the row", async () => {
    const { asked, place } = await drawn(<Budgets />);
    await press("Withhold class");
    await settle();
    expect(asked.at(-1)?.changes).toEqual([{ change: "withhold", plan: "a", attributes: ["class"], withheld: true }]);
    expect(named("Collect again: class").textContent).toBe("Collect again");
    expect(place.querySelectorAll(".release.withheld")).toHaveLength(1);
  });

  it("shows a long list in pages", async () => {
    const { place } = await drawn(<Secrets />, mockState(400, 1));
    expect(place.querySelectorAll(".row")).toHaveLength(150);
    await press("Show 150 more of 250");
    expect(place.querySelectorAll(".row")).toHaveLength(300);
  });

  it("greys what is stale and says so to those who cannot see it", async () => {
    const state = mockState();
    const first = figuresOf(state);
    const secrets = first.secrets.map((item) => ({ ...item, decisive: figure(1.234, { kind: "sampled", stale: true, low: 1.1, high: 1.3 }) }));
    await drawn(<Budgets />, { ...state, figures: [{ ...first, secrets }] });
    const shown = named("All reports about sex: 1.23 nats, sampled, being computed anew");
    expect(shown.className).toContain("stale");
    expect(shown.textContent).toContain("1.10 to 1.30");
    expect(document.querySelector(".odds p")?.className).toBe("stale");
  });

  it("tells kind, method and witness of a figure when it gets the focus", async () => {
    await drawn(<App />);
    await act(() => void (store.step.value = "budgets"));
    const shown = document.querySelector<HTMLElement>(".bars .hint");
    await act(() => void shown?.dispatchEvent(new Event("focus")));
    const tip = document.getElementById("tip");
    expect(tip?.hidden).toBe(false);
    expect(tip?.textContent).toContain("certified");
    expect(tip?.textContent).toContain("class=1st, age=adult");
    await act(() => void dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" })));
    expect(tip?.hidden).toBe(true);
  });

  it("orders by what matters", () => {
    const state = mockState(6);
    const releases = (state.plans[0] as State["plans"][number]).releases.map((release, place) => ({ ...release, epsilon: place + 1 }));
    expect(ordered(releases, "budget", null)[0]?.attribute).toBe("marital status");
    expect(ordered(releases, "name", null).map(({ attribute }) => attribute)).toEqual(["age", "class", "education", "income", "marital status", "sex"]);
    const loud = loudest(figuresOf(state));
    const leaks = ordered(releases, "leak", figuresOf(state)).map(({ attribute }) => loud.get(attribute)?.value ?? -1);
    expect(leaks).toEqual([...leaks].sort((one, other) => other - one));
  });
});

describe("secrets, adversary and columns", () => {
  it("marks a secret and gives it a limit and a reason", async () => {
    const { asked, place } = await drawn(<Secrets />);
    await act(() => [...place.querySelectorAll<HTMLInputElement>("input[type=checkbox]")][2]?.click());
    await settle();
    expect(asked.at(-1)?.changes[0]).toMatchObject({ change: "secrets", secrets: [{ name: "sex" }, { name: "age" }, { name: "class" }], limit: 2 });
    await put("Limit of class", "0.5");
    await settle();
    await put("Why class is secret", "people asked for it", "change");
    await settle();
    const last = asked.at(-1)?.changes[0];
    expect(last).toMatchObject({ secrets: expect.arrayContaining([{ name: "class", limit: 0.5, reason: "people asked for it" }]) });
  });

  it("lets a limit be taken away", async () => {
    const { asked } = await drawn(<Secrets />);
    await put("Limit for all secrets", "");
    await settle();
    expect(asked.at(-1)?.changes[0]).toMatchObject({ limit: null });
  });

  it("sets a delta by its slider, and offers who decides at it", async () => {
    const state = mockState();
    const settings = { ...state.settings, delta: 0.001 };
    const { asked } = await drawn(<Adversary />, { ...state, settings });
    await put("Delta", "0");
    await settle();
    expect(asked.at(-1)?.changes[0]).toMatchObject({ change: "adversary", delta: 1e-9 });
    expect(deciders(settings).map(([name]) => name)).toEqual(["", "report", "population", "table"]);
    expect(deciders(state.settings).map(([name]) => name)).toEqual(["", "report"]);
  });

  it("corrects a column without losing what else is known of it", async () => {
    const { asked } = await drawn(<Columns />);
    await put("Bins of income", "12");
    await settle();
    expect(asked.at(-1)?.changes).toEqual([{ change: "column", name: "income", kind: "numeric", bins: 12, missing: null }]);
    await put("Type of class", "ordinal", "change");
    await settle();
    expect(asked.at(-1)?.changes[0]).toMatchObject({ name: "class", kind: "ordinal", missing: "absent" });
  });

  it("shows hostile names as text", async () => {
    const state = mockState(2, 0);
    const name = "<img src=x onerror=alert(1)>";
    const { place } = await drawn(<Columns />, { ...state, columns: state.columns.map((column) => ({ ...column, name })) });
    expect(place.querySelector("img")).toBeNull();
    expect(place.querySelector("h2")?.textContent).toBe(name);
  });
});

describe("the frame", () => {
  it("undoes and goes to a step by keys, but not while somebody types", async () => {
    const state = mockState();
    const { asked } = await drawn(<App />, { ...state, history: { undo: "budget of age", redo: null } });
    await act(() => void dispatchEvent(new KeyboardEvent("keydown", { key: "4", code: "Digit4", altKey: true })));
    expect(store.step.value).toBe("budgets");
    await act(() => void document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "z", ctrlKey: true, bubbles: true })));
    await settle();
    expect(asked.at(-1)?.changes).toEqual([{ change: "undo" }]);
    await act(() => void named("Search attributes").dispatchEvent(new KeyboardEvent("keydown", { key: "z", ctrlKey: true, bubbles: true })));
    await settle();
    expect(asked).toHaveLength(1);
  });

  it("says that the server is gone, and that figures come from raw data", async () => {
    const { cut, place } = await drawn(<App />);
    expect(place.querySelector(".banner")?.textContent).toContain("raw data");
    await act(() => cut(false));
    expect(place.querySelector("[role=alert]")?.textContent).toContain("does not answer");
    await act(() => cut(true));
    await settle(5);
    expect(place.querySelector("[role=alert]")?.textContent).toBe("");
  });

  it("says why a change was refused, and shows what holds", async () => {
    const { server, place } = await drawn(<App />);
    server.change = () => Promise.reject(new Refusal(400, "The budget of age must be below 700."));
    await act(() => void (store.step.value = "budgets"));
    await put("Budget of age as a number", "650");
    await settle();
    expect(place.querySelector("[role=alert]")?.textContent).toContain("must be below 700");
    expect(named("Budget of age as a number").value).toBe("1");
    await press("Close");
  });

  it("shows whether the state is saved", async () => {
    const { tell, place } = await drawn(<App />);
    await act(() => tell({ event: "saved", revision: 0 }));
    expect(place.querySelector(".saved")?.textContent).toBe("Saving");
    await act(() => tell({ event: "saved", revision: 1 }));
    expect(place.querySelector(".saved")?.textContent).toBe("Saved");
    await act(() => tell({ event: "saved", revision: 1, problem: "The disk is full." }));
    expect(place.querySelector(".saved")?.textContent).toBe("Not saved");
    await act(() => tell({ event: "saved", revision: 1 }));
  });

  it("gives every control of every step a name", async () => {
    const { place } = await drawn(<App />);
    for (const name of store.STEPS) {
      await act(() => void (store.step.value = name));
      for (const control of place.querySelectorAll("input, select, textarea, button")) {
        const label = control.getAttribute("aria-label") ?? control.textContent?.trim();
        expect(label || control.closest("label")?.textContent?.trim(), `${name}: ${control.outerHTML}`).toBeTruthy();
      }
      expect(place.querySelectorAll("h1")).toHaveLength(1);
      expect(place.innerHTML).not.toMatch(/ on\w+=/);
    }
  });
});

describe("the heat map", () => {
  const { pairs } = figuresOf(mockState(40, 5));
  it("finds the cell under the pointer, wherever it is", () => {
    const layout = layoutOf(40, 5, 500);
    for (const [row, column] of [[0, 0], [39, 4], [17, 2]] as const) {
      const [x, y] = [layout.gutter + (column + 0.5) * layout.cell.width, layout.head + (row + 0.5) * layout.cell.height];
      expect(cellAt(layout, pairs, x, y)).toEqual({ row, column });
    }
    expect(cellAt(layout, pairs, 3, 3)).toBeNull();
  });
  it("names as many columns as there is room for, and the one that is looked at", () => {
    const named = (size: number, at?: number) => Array.from({ length: 40 }, (_, place) => place).filter((place) => isNamed(place, at, size, 10));
    expect(named(12)).toHaveLength(40);
    expect(named(6)).toEqual(Array.from({ length: 20 }, (_, place) => 2 * place));
    expect(named(6, 7).filter((place) => place > 4 && place < 11)).toEqual([7, 10]);
  });
  it("ends its legend where its colours end", async () => {
    await drawn(<HeatMap pairs={pairs} plan="a" revision={1} limit={17} />);
    expect(document.querySelector(".legend")?.textContent).toContain("17 nats");
  });
  it("is walked by arrow keys and ends at its edges", () => {
    expect(cellAfter("ArrowUp", { row: 0, column: 0 }, pairs)).toEqual({ row: 0, column: 0 });
    expect(cellAfter("ArrowDown", { row: 39, column: 0 }, pairs)).toEqual({ row: 39, column: 0 });
    expect(cellAfter("End", { row: 3, column: 0 }, pairs)).toEqual({ row: 3, column: 4 });
    expect(cellAfter("Tab", { row: 3, column: 0 }, pairs)).toBeNull();
  });
  it("says what a cell means, infinite ones too", () => {
    expect(cellWords(pairs, { row: 0, column: 0 })).toBe("sex: its own report");
    const endless = { ...pairs, values: [["infinity", 0.5, 0.5, 0.5, 0.5] as (number | "infinity")[]] };
    expect(cellWords(endless, { row: 0, column: 0 })).toContain("∞ nats");
    expect(largest(endless)).toBe(0.5);
  });
});

describe("verdicts and plans", () => {
  it("puts what is worst first, infinite figures too", () => {
    const base = figuresOf(mockState(4, 3)).secrets;
    const secrets = base.map((item, place) => ({ ...item, outcome: (["within", "exceeded", "exceeded"] as const)[place] ?? item.outcome }));
    const endless = secrets.map((item, place) => (place === 2 ? { ...item, decisive: figure("infinity") } : item));
    expect(worstFirst(endless).map(({ secret }) => secret)).toEqual(["class", "age", "sex"]);
  });
  it("says how a plan stands", () => {
    const first = figuresOf(mockState(4, 2));
    const all = (outcome: "within" | "described" | "not certified") => ({ ...first, outcome, secrets: first.secrets.map((item) => ({ ...item, outcome })) });
    expect(verdict(all("within"))).toBe("All 2 secrets are within their limits.");
    expect(verdict(all("described"))).toBe("No limit is set, so nothing is judged.");
    expect(verdict(all("not certified"))).toBe("2 of 2 secrets are not certified to be within the limit.");
    const [one, other] = all("not certified").secrets as [SecretFigures, SecretFigures];
    const mixed = { ...first, secrets: [one, { ...other, outcome: "exceeded" as const }] };
    expect(verdict(mixed)).toBe("1 of 2 secrets is above the limit.");
    expect(verdict({ ...mixed, pending: ["leakage of all reports together"] })).toBe("At least 1 of 2 secrets is above the limit.");
    expect(verdict({ ...first, secrets: [] })).toBe("Nothing is released.");
    expect(verdict({ ...first, problem: "No attribute is left." })).toBe("No attribute is left.");
  });
  it("names what plans release differently, and a plan that is new", () => {
    const [first] = mockState().plans as [State["plans"][number]];
    const other = { ...first, id: "b", releases: first.releases.map((release) => (release.attribute === "age" ? { ...release, withheld: true } : release)) };
    expect(differing([first, other])).toEqual(["age"]);
    expect(differing([first])).toEqual([]);
    expect(freshName(["Plan 1", "Plan 3"])).toBe("Plan 4");
    expect(freshName(["Plan 2"])).toBe("Plan 3");
  });
});
