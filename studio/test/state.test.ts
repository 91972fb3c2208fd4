import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { brief, duration, factor, nats, percent, points } from "../src/state/format.ts";
import { PACE, queue, type Step } from "../src/state/queue.ts";
import { BUDGETS, DELTAS, STEPS, toPosition, toValue } from "../src/state/scale.ts";
import { share } from "../src/state/sharing.ts";
import * as store from "../src/state/store.ts";
import { mockServer, mockState } from "./mock.ts";

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
const budget = (epsilon: number, gesture: string): Step => ({ changes: [{ change: "budget", plan: "a", attributes: ["age"], epsilon }], gesture });

describe("a slider's scale", () => {
  it.each([BUDGETS, DELTAS])("gives every position a value that stands there again", (scale) => {
    for (let position = 0; position <= STEPS; position += 1) {
      expect(Math.abs(toPosition(toValue(position, scale), scale) - position)).toBeLessThanOrEqual(1);
    }
  });
  it("multiplies by equal steps and keeps to its ends", () => {
    expect(toValue(0, BUDGETS)).toBe(BUDGETS.least);
    expect(toValue(STEPS, BUDGETS)).toBe(BUDGETS.most);
    expect(toPosition(1000, BUDGETS)).toBe(STEPS);
    expect(toValue(500, BUDGETS)).toBeCloseTo(Math.sqrt(BUDGETS.least * BUDGETS.most), 2);
  });
});

describe("figures in words", () => {
  it("never rounds a figure to nothing, to certainty or away from infinity", () => {
    expect(nats("infinity")).toBe("∞");
    expect(factor("infinity")).toBe("× ∞");
    expect(nats(0.001)).toBe("< 0.01");
    expect(percent(0.0001)).toBe("< 0.1 %");
    expect(percent(0.99999)).toBe("> 99.9 %");
    expect(percent(1)).toBe("100.0 %");
    expect(points(0.00002)).toBe("0.002 points");
  });
  it("keeps about three digits", () => {
    expect(brief(1234567)).toBe("1.2e6");
    expect(brief(12345)).toBe("12,345");
    expect(brief(0.0512)).toBe("0.0512");
    expect(brief(20)).toBe("20.0");
  });
});

describe("how long work takes", () => {
  it("is said roughly", () => {
    expect([2, 43, 89, 91, 130].map(duration)).toEqual(["a few seconds", "about 45 seconds", "about 90 seconds", "about 2 minutes", "about 2 minutes"]);
  });
});

describe("the queue of changes", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("sends one step at a time, in order, and of a gesture only the newest", async () => {
    const sent: number[] = [];
    let isBusy = false;
    const push = queue(async ({ changes }) => {
      expect(isBusy).toBe(false);
      isBusy = true;
      await pause(20);
      sent.push((changes[0] as { epsilon: number }).epsilon);
      isBusy = false;
    });
    for (let epsilon = 1; epsilon <= 50; epsilon += 1) push(budget(epsilon, "drag"));
    push(budget(99, ""));
    push(budget(100, "another"));
    await vi.advanceTimersByTimeAsync(250);
    expect(sent).toEqual([1, 50, 99, 100]);
  });
  it("sends at most thirty steps of a gesture in a second", async () => {
    const times: number[] = [];
    const push = queue(async () => void times.push(performance.now()));
    for (let place = 0; place < 60; place += 1) {
      push(budget(place, "drag"));
      await vi.advanceTimersByTimeAsync(5);
    }
    await vi.advanceTimersByTimeAsync(2 * PACE);
    const gaps = times.slice(1).map((time, place) => time - (times[place] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(PACE - 1);
    expect(times.length).toBeGreaterThanOrEqual(8);
  });
});

describe("sharing", () => {
  it("keeps the identity of what did not change", () => {
    const last = { rows: [{ name: "a", value: 1 }, { name: "b", value: 2 }], other: { deep: [1, 2, 3] } };
    const next = share(last, structuredClone({ ...last, rows: [{ name: "a", value: 1 }, { name: "b", value: 3 }] }));
    expect(next.rows[0]).toBe(last.rows[0]);
    expect(next.rows[1]).not.toBe(last.rows[1]);
    expect(next.rows[1]).toEqual({ name: "b", value: 3 });
    expect(next.other).toBe(last.other);
    expect(share(last, structuredClone(last))).toBe(last);
    expect(share([1, 2, 3], [1, 2])).toEqual([1, 2]);
    expect(share({ a: 1, b: 2 }, { a: 1 })).toEqual({ a: 1 });
  });
});

describe("the store", () => {
  async function connected(state = mockState()) {
    const mock = mockServer(state);
    store.state.value = null;
    store.connect(mock.server);
    await pause(1);
    return mock;
  }

  it("shows a moved budget at once, and the server's figures when they come", async () => {
    await connected();
    store.move(["age"], 3, "drag");
    expect(store.moved.value.get("age")).toBe(3);
    expect(store.isBusy.value).toBe(true);
    await pause(60);
    expect(store.plan.value?.releases.find(({ attribute }) => attribute === "age")?.epsilon).toBe(3);
    expect(store.moved.value.size).toBe(0);
    expect(store.isBusy.value).toBe(false);
  });

  it("throws figures of an earlier revision away", async () => {
    const mock = await connected();
    const now = store.figures.value;
    if (now === null) throw new Error("no figures");
    mock.tell({ event: "figures", figures: { ...now, revision: now.revision - 1, people: 7 } });
    expect(store.figures.value?.people).toBe(48842);
    mock.tell({ event: "figures", figures: { ...now, people: 8 } });
    expect(store.figures.value?.people).toBe(8);
  });

  it("fetches the state again after the link was lost, and when another window changed it", async () => {
    const mock = await connected();
    mock.cut(false);
    expect(store.link.value).toBe("lost");
    await mock.server.change({ changes: [{ change: "rename plan", plan: "a", name: "Renamed" }], window: "x" });
    mock.cut(true);
    await pause(1);
    expect(store.link.value).toBe("open");
    expect(store.plan.value?.name).toBe("Renamed");
    await mock.server.change({ changes: [{ change: "rename plan", plan: "a", name: "Again" }], window: "x" });
    mock.tell({ event: "changed", revision: 3, window: "x" });
    await pause(1);
    expect(store.plan.value?.name).toBe("Again");
  });

  it("keeps one result of a kind for a plan", async () => {
    const mock = await connected();
    const result = { result: "calibrated", work: "w1", plan: "a", revision: 1, budgets: [], words: [] } as const;
    mock.tell({ event: "result", result: { ...result, budgets: [], words: [] } });
    mock.tell({ event: "result", result: { ...result, work: "w2", budgets: [], words: [] } });
    expect(store.state.value?.results.map(({ work }) => work)).toEqual(["w2"]);
  });
});
