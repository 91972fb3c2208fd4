// Controls that several steps share; each has a name that a screen reader can say.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { brief } from "../state/format.ts";
import { type LogScale, STEPS, toPosition, toValue } from "../state/scale.ts";

interface NumberProps {
  label: string;
  value: number | null;
  onValue: (value: number | null) => void;
  min?: number;
  max?: number;
  whole?: boolean;
  empty?: string;
  disabled?: boolean;
  describedBy?: string;
}

/** Return a number as it is written in a box; the figures are those of the number in full. */
const shortened = (value: number): string => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4))));

/** A number box. What is typed counts once it is left or Enter is pressed; what is no number is taken back. */
export function NumberBox(props: NumberProps) {
  const { value, min = 0, max = Infinity } = props;
  const text = value === null ? "" : shortened(value);
  const [typed, setTyped] = useState<string | null>(null);
  const settle = (): void => {
    if (typed === null) return;
    setTyped(null);
    if (typed === text) return;
    if (typed.trim() === "") return props.empty === undefined ? undefined : props.onValue(null);
    const number = Number(typed);
    if (!Number.isFinite(number)) return undefined;
    const inside = Math.min(max, Math.max(min, number));
    props.onValue(props.whole ? Math.round(inside) : inside);
  };
  return (
    <input
      type="text"
      inputMode="decimal"
      class="box"
      data-settled={typed === null ? "yes" : undefined}
      aria-label={props.label}
      aria-describedby={props.describedBy}
      placeholder={props.empty}
      disabled={props.disabled}
      value={typed ?? text}
      onInput={(event) => setTyped(event.currentTarget.value)}
      onBlur={settle}
      onKeyDown={(event) => {
        if (event.key === "Enter") settle();
        if (event.key === "Escape") setTyped(null);
      }}
    />
  );
}

let gestures = 0;

interface SliderProps {
  label: string;
  value: number | null;
  scale: LogScale;
  onValue: (value: number, gesture: string) => void;
  disabled?: boolean;
}

/** A slider on a logarithmic scale. All that happens between touching and leaving it is one gesture. */
export function Slider({ label, value, scale, onValue, disabled }: SliderProps) {
  const gesture = useRef("");
  const input = useRef<HTMLInputElement>(null);
  const position = toPosition(value ?? scale.least, scale);
  useEffect(() => input.current?.style.setProperty("--at", `${(100 * position) / STEPS}%`), [position]);
  const end = (): void => {
    gesture.current = "";
  };
  return (
    <input
      ref={input}
      type="range"
      class="slider"
      min={0}
      max={STEPS}
      step={1}
      aria-label={label}
      aria-valuetext={value === null ? "none" : brief(value)}
      disabled={disabled}
      value={position}
      onInput={(event) => {
        gesture.current ||= `slider ${(gestures += 1)}`;
        onValue(toValue(event.currentTarget.valueAsNumber, scale), gesture.current);
      }}
      onPointerUp={end}
      onKeyUp={end}
      onBlur={end}
    />
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onValue: (value: T) => void;
  disabled?: boolean;
  title?: string | undefined;
}

/** A menu. */
export function Choice<T extends string>({ label, value, options, onValue, disabled, title }: ChoiceProps<T>) {
  return (
    <select
      aria-label={label}
      title={title}
      value={value}
      disabled={disabled}
      onChange={(event) => onValue(event.currentTarget.value as T)}
    >
      {options.map(([name, words]) => (
        <option key={name} value={name} selected={name === value}>
          {words}
        </option>
      ))}
    </select>
  );
}

/** A field with its name above and what to know below. */
export function Field(props: { label: string; note?: ComponentChildren; children: ComponentChildren }) {
  const id = useId();
  return (
    <div class="field" role="group" aria-labelledby={id}>
      <span id={id} class="name">
        {props.label}
      </span>
      {props.children}
      {props.note && <small class="muted">{props.note}</small>}
    </div>
  );
}

/** A search box that filters what is below it. */
export function Search({ label, value, onValue }: { label: string; value: string; onValue: (value: string) => void }) {
  return (
    <input
      type="search"
      class="search"
      aria-label={label}
      placeholder={label}
      value={value}
      onInput={(event) => onValue(event.currentTarget.value)}
    />
  );
}

/** How many rows are shown before somebody asks for more. */
export const PAGE = 150;

/** A long list: its beginning, and a button for what follows. */
export function Long<T>({ items, row, noun }: { items: T[]; row: (item: T) => ComponentChildren; noun: string }) {
  const [most, setMost] = useState(PAGE);
  const rest = items.length - most;
  return (
    <>
      <ul class="rows">{items.slice(0, most).map(row)}</ul>
      {items.length === 0 && <p class="muted">No {noun} fits the search.</p>}
      {rest > 0 && (
        <p>
          <button type="button" onClick={() => setMost(most + PAGE)}>
            Show {Math.min(rest, PAGE)} more of {rest}
          </button>
        </p>
      )}
    </>
  );
}
