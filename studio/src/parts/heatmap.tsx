// Who leaks about whom: a row for each report, a column for each secret; the darker, the more it says.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { PairDetail, Pairs } from "../messages.ts";
import { brief, factor, nats, real, type Real } from "../state/format.ts";
import { pair, said } from "../state/store.ts";
import { Curve } from "./curve.tsx";
import { FigureWords } from "./figure.tsx";
import { hideTip, showTip } from "./tip.tsx";

/** A cell, by the places of its report and its secret. */
export interface Cell {
  row: number;
  column: number;
}

/** Where everything is drawn, in pixels. */
export interface Layout {
  gutter: number;
  head: number;
  width: number;
  height: number;
  cell: { width: number; height: number };
}

const OWNER = "heat map";
const REST = 120;
/** Room for names, which are written above columns and lean over the last one. */
const [HEAD, LEAN] = [74, 28];

/** Return the layout of a map of so many rows and columns in a given width. */
export function layoutOf(rows: number, columns: number, width: number): Layout {
  const gutter = Math.min(130, Math.round(width * 0.3));
  const cellWidth = Math.max(0, width - gutter - LEAN) / Math.max(1, columns);
  const cellHeight = Math.max(3, Math.min(18, 520 / Math.max(1, rows)));
  return { gutter, head: HEAD, width, height: HEAD + rows * cellHeight, cell: { width: cellWidth, height: cellHeight } };
}

/** Return the cell at a place, or null beside all of them. */
export function cellAt(layout: Layout, pairs: Pairs, x: number, y: number): Cell | null {
  const column = Math.floor((x - layout.gutter) / layout.cell.width);
  const row = Math.floor((y - layout.head) / layout.cell.height);
  const isInside = row >= 0 && row < pairs.releases.length && column >= 0 && column < pairs.secrets.length;
  return isInside ? { row, column } : null;
}

/** Return the cell that a key leads to; null for keys that lead nowhere. */
export function cellAfter(key: string, at: Cell, pairs: Pairs): Cell | null {
  const [lastRow, lastColumn] = [pairs.releases.length - 1, pairs.secrets.length - 1];
  switch (key) {
    case "ArrowUp":
      return { ...at, row: Math.max(0, at.row - 1) };
    case "ArrowDown":
      return { ...at, row: Math.min(lastRow, at.row + 1) };
    case "ArrowLeft":
      return { ...at, column: Math.max(0, at.column - 1) };
    case "ArrowRight":
      return { ...at, column: Math.min(lastColumn, at.column + 1) };
    case "Home":
      return { ...at, column: 0 };
    case "End":
      return { ...at, column: lastColumn };
    default:
      return null;
  }
}

/** Return what a cell says, in words. */
export function cellWords(pairs: Pairs, { row, column }: Cell): string {
  const [who, whom] = [pairs.releases[row] ?? "", pairs.secrets[column] ?? ""];
  const value = pairs.values[row]?.[column] ?? null;
  if (value === null) return who === whom ? `${who}: its own report` : `${who} is not released`;
  return `The report of ${who} says ${nats(value)} nats about ${whom}: odds move by at most ${factor(value)}`;
}

/** Return the largest finite figure of the map; the scale ends there. */
export function largest(pairs: Pairs): number {
  let most = 0;
  for (const row of pairs.values) {
    for (const value of row) if (value !== null && value !== "infinity" && value > most) most = value;
  }
  return most;
}

/** The map, with its legend and the words of the cell that is looked at. */
export function HeatMap({ pairs, plan, revision, limit }: { pairs: Pairs; plan: string; revision: number; limit: number | null }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const layout = useRef<Layout>(layoutOf(0, 0, 0));
  const at = useSignal<Cell | null>(null);
  const most = Math.max(largest(pairs), limit ?? 0);
  const look = (cell: Cell | null, isKey: boolean): void => {
    at.value = cell;
    if (isKey && cell) said.value = cellWords(pairs, cell);
  };
  const redraw = (): void => {
    const element = canvas.current;
    if (element === null) return;
    layout.current = layoutOf(pairs.releases.length, pairs.secrets.length, element.parentElement?.clientWidth ?? 300);
    draw(element, layout.current, pairs, most, at.peek());
  };
  useRedraw(canvas, redraw);
  useEffect(redraw, [pairs, limit, at.value]);
  useDetail(canvas, layout, pairs, plan, revision, at);
  const words = at.value ? cellWords(pairs, at.value) : "";
  return (
    <div class={pairs.stale ? "heat stale" : "heat"}>
      <div
        class="map"
        tabIndex={0}
        role="application"
        aria-roledescription="heat map"
        aria-label={`Who leaks about whom: ${pairs.releases.length} reports, ${pairs.secrets.length} secrets. Arrow keys move from cell to cell.`}
        onPointerMove={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          const cell = cellAt(layout.current, pairs, event.clientX - box.left, event.clientY - box.top);
          if (cell?.row !== at.peek()?.row || cell?.column !== at.peek()?.column) look(cell, false);
        }}
        onPointerLeave={() => look(null, false)}
        onBlur={() => look(null, false)}
        onKeyDown={(event) => {
          const next = cellAfter(event.key, at.peek() ?? { row: 0, column: 0 }, pairs);
          if (next === null) return;
          event.preventDefault();
          look(at.peek() === null ? { row: 0, column: 0 } : next, true);
        }}
      >
        <canvas ref={canvas} aria-hidden="true" />
      </div>
      <Legend most={most} />
      <p class="muted readout">{words || "Point at a cell, or use the arrow keys, to see what it says."}</p>
    </div>
  );
}

function Legend({ most }: { most: number }) {
  return (
    <p class="legend" aria-hidden="true">
      <span>
        0 <i class="ramp" /> {brief(most, 2)} nats
      </span>
      <span>
        <i class="patch own" /> own report
      </span>
      <span>
        <i class="patch endless" /> infinite
      </span>
    </p>
  );
}

type Ref<T> = { current: T };

/** Draw anew when the map gets another width or the page another theme. */
function useRedraw(canvas: Ref<HTMLCanvasElement | null>, redraw: () => void): void {
  const latest = useRef(redraw);
  latest.current = redraw;
  useEffect(() => {
    const again = (): void => latest.current();
    const watcher = new ResizeObserver(again);
    if (canvas.current?.parentElement) watcher.observe(canvas.current.parentElement);
    const themes = matchMedia("(prefers-color-scheme: dark)");
    themes.addEventListener("change", again);
    return () => {
      watcher.disconnect();
      themes.removeEventListener("change", again);
    };
  }, []);
}

/** Fetch what is known of the cell once the pointer rests on it, and show it beside. */
function useDetail(
  canvas: Ref<HTMLCanvasElement | null>, layout: Ref<Layout>, pairs: Pairs, plan: string, revision: number,
  at: { value: Cell | null; subscribe: (call: (cell: Cell | null) => void) => () => void },
): void {
  useEffect(() => {
    let timer = 0;
    const known = new Map<string, PairDetail>();
    const stop = at.subscribe((cell) => {
      window.clearTimeout(timer);
      hideTip(OWNER);
      if (cell === null || (pairs.values[cell.row]?.[cell.column] ?? null) === null) return;
      timer = window.setTimeout(async () => {
        const [through, secret] = [pairs.releases[cell.row] ?? "", pairs.secrets[cell.column] ?? ""];
        const key = JSON.stringify([secret, through]);
        const detail = known.get(key) ?? (await pair(plan, secret, through).catch(() => null));
        if (detail === null || at.value !== cell || canvas.current === null) return;
        known.set(key, detail);
        showTip(OWNER, boxOf(canvas.current, layout.current, cell), <Detail detail={detail} />);
      }, REST);
    });
    return () => {
      stop();
      window.clearTimeout(timer);
      hideTip(OWNER);
    };
  }, [pairs, plan, revision]);
}

function Detail({ detail }: { detail: PairDetail }) {
  return (
    <>
      <p>
        <b>{detail.through}</b> about <b>{detail.secret}</b>
      </p>
      <FigureWords figure={detail.figure} />
      <p class="muted">The true value would say {nats(detail.saturation)} nats.</p>
      <Curve points={detail.curve} ceiling={detail.saturation} />
    </>
  );
}

function boxOf(canvas: HTMLCanvasElement, { gutter, head, cell }: Layout, { row, column }: Cell): DOMRect {
  const box = canvas.getBoundingClientRect();
  return new DOMRect(box.left + gutter + column * cell.width, box.top + head + row * cell.height, cell.width, cell.height);
}

const RAMP = ["--heat-0", "--heat-1", "--heat-2", "--heat-3", "--heat-4"];

/** Draw the map; colours are those of the theme. */
function draw(canvas: HTMLCanvasElement, layout: Layout, pairs: Pairs, most: number, at: Cell | null): void {
  const context = canvas.getContext("2d");
  if (context === null || layout.width <= 0) return;
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(layout.width * scale);
  canvas.height = Math.round(layout.height * scale);
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${layout.height}px`;
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const ramp = shades(RAMP.map(colour), 64);
  const [own, endless] = [colour("--own"), colour("--exceeded")];
  const { gutter, head, cell } = layout;
  const inset = cell.width > 8 && cell.height > 8 ? 1 : 0;
  pairs.values.forEach((row, y) => {
    row.forEach((value, x) => {
      context.fillStyle = value === null ? own : value === "infinity" ? endless : (ramp[shadeOf(value, most)] ?? own);
      context.fillRect(gutter + x * cell.width, head + y * cell.height, cell.width - inset, cell.height - inset);
    });
  });
  label(context, layout, pairs, at, { ink: colour("--ink"), muted: colour("--muted"), accent: colour("--accent") });
}

const shadeOf = (value: Real, most: number): number => (most > 0 ? Math.round((63 * real(value)) / most) : 0);

/** Return `many` colours between those of the theme, which are written #rrggbb. */
function shades(stops: string[], many: number): string[] {
  const parts = stops.map((stop) => [1, 3, 5].map((start) => parseInt(stop.slice(start, start + 2), 16)));
  return Array.from({ length: many }, (_, place) => {
    const at = (place / (many - 1)) * (parts.length - 1);
    const [low, high] = [parts[Math.floor(at)] ?? [], parts[Math.ceil(at)] ?? []];
    return `rgb(${low.map((value, channel) => Math.round(value + (at % 1) * ((high[channel] ?? value) - value))).join(" ")})`;
  });
}

interface Inks {
  ink: string;
  muted: string;
  accent: string;
}

function label(context: CanvasRenderingContext2D, layout: Layout, pairs: Pairs, at: Cell | null, inks: Inks): void {
  const { gutter, head, cell } = layout;
  context.textBaseline = "middle";
  context.font = "11px system-ui, sans-serif";
  pairs.releases.forEach((name, row) => {
    if (!isNamed(row, at?.row, cell.height, 10)) return;
    context.fillStyle = at?.row === row ? inks.accent : inks.muted;
    context.textAlign = "right";
    context.fillText(clipped(context, name, gutter - 8), gutter - 6, head + (row + 0.5) * cell.height);
  });
  pairs.secrets.forEach((name, column) => {
    if (!isNamed(column, at?.column, cell.width, 12.5)) return;
    const left = gutter + (column + 0.5) * cell.width;
    context.save();
    context.translate(left, head - 5);
    context.rotate(-Math.PI / 3);
    context.textAlign = "left";
    context.fillStyle = at?.column === column ? inks.accent : inks.muted;
    context.fillText(clipped(context, name, Math.min(76, 2 * (layout.width - left))), 0, 0);
    context.restore();
  });
  if (at === null) return;
  context.strokeStyle = inks.ink;
  context.lineWidth = 2;
  context.strokeRect(gutter + at.column * cell.width, head + at.row * cell.height, cell.width, cell.height);
}

/** Whether a row or column is named: the one looked at is, others as often as names find room. */
export function isNamed(place: number, at: number | undefined, size: number, room: number): boolean {
  const every = Math.max(1, Math.ceil(room / size));
  if (place === at) return true;
  return place % every === 0 && (at === undefined || every === 1 || Math.abs(at - place) * size > room);
}

function clipped(context: CanvasRenderingContext2D, text: string, width: number): string {
  let shown = text.slice(0, 60);
  if (shown === text && context.measureText(shown).width <= width) return shown;
  while (shown.length > 1 && context.measureText(`${shown}…`).width > width) shown = shown.slice(0, -1);
  return `${shown}…`;
}
