// Draws components into a page in memory, connected to a server in memory.
import type { ComponentChild } from "preact";
import { render } from "preact";
import { act } from "preact/test-utils";
import type { State } from "../src/messages.ts";
import * as store from "../src/state/store.ts";
import { mockServer, mockState } from "./mock.ts";

/** Let everything that is on its way arrive. */
export const settle = (milliseconds = 60): Promise<void> =>
  act(async () => {
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
  });

let clear = (): void => undefined;

/** Draw a component that is connected to a server with a state. */
export async function drawn(component: ComponentChild, state: State = mockState()) {
  clear();
  const mock = mockServer(state);
  document.body.innerHTML = "<div id='studio'></div>";
  const place = document.getElementById("studio") as HTMLElement;
  store.state.value = null;
  store.problem.value = "";
  store.chosen.value = null;
  const stop = store.connect(mock.server);
  await settle(5);
  await act(() => render(component, place));
  clear = () => {
    stop();
    render(null, place);
  };
  return { ...mock, place };
}

/** Return the control of a name, as a screen reader would find it. */
export function named<T extends HTMLElement = HTMLInputElement>(label: string, place: ParentNode = document): T {
  const found = [...place.querySelectorAll<T>("[aria-label], button, a")].find(
    (element) => (element.getAttribute("aria-label") ?? element.textContent?.trim()) === label,
  );
  if (found === undefined) throw new Error(`no control is named ${label}`);
  return found;
}

/** Put a value into a control and say so. */
export async function put(label: string, value: string, event: "input" | "change" = "input"): Promise<void> {
  const control = named(label);
  await act(() => {
    control.value = value;
    control.dispatchEvent(new Event(event, { bubbles: true }));
  });
  if (event === "input" && control.type === "text") {
    await act(() => void control.dispatchEvent(new Event("blur")));
  }
}

/** Press a button or tick a box. */
export async function press(label: string): Promise<void> {
  await act(() => named(label).click());
}
