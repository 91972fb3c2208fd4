// What is one hover away: words beside the thing that the pointer or the keyboard is at.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface Shown {
  anchor: DOMRect;
  owner: string;
  content: ComponentChildren;
}

const shown = signal<Shown | null>(null);
const ID = "tip";
const GAP = 8;

/** Show words beside a place on the screen, on behalf of an owner. */
export function showTip(owner: string, anchor: DOMRect, content: ComponentChildren): void {
  shown.value = { owner, anchor, content };
}

/** Take an owner's words away; those of others stay. */
export function hideTip(owner: string): void {
  if (shown.peek()?.owner === owner) shown.value = null;
}

/** The one tip of the page; Escape takes it away. */
export function Tip() {
  const box = useRef<HTMLDivElement>(null);
  const now = shown.value;
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || now === null) return undefined;
    place(element, now.anchor);
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape") shown.value = null;
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [now]);
  return (
    <div ref={box} id={ID} role="tooltip" class="tip" hidden={now === null}>
      {now?.content}
    </div>
  );
}

function place(element: HTMLElement, anchor: DOMRect): void {
  const { width, height } = element.getBoundingClientRect();
  const left = Math.max(GAP, Math.min(anchor.left, innerWidth - width - GAP));
  const isBelow = anchor.bottom + GAP + height <= innerHeight;
  element.style.left = `${left}px`;
  element.style.top = `${isBelow ? anchor.bottom + GAP : Math.max(GAP, anchor.top - height - GAP)}px`;
}

/** Something with more to say: by pointer, touch or keyboard. */
export function Hint(props: { children: ComponentChildren; tip: ComponentChildren; label?: string; class?: string }) {
  const id = useId();
  const isOpen = shown.value?.owner === id;
  const show = (event: Event): void =>
    showTip(id, (event.currentTarget as HTMLElement).getBoundingClientRect(), props.tip);
  const hide = (): void => hideTip(id);
  return (
    <button
      type="button"
      class={`hint ${props.class ?? ""}`}
      aria-label={props.label}
      aria-describedby={isOpen ? ID : undefined}
      onPointerEnter={show}
      onPointerLeave={hide}
      onFocus={show}
      onBlur={hide}
      onClick={show}
    >
      {props.children}
    </button>
  );
}
