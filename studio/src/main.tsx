// The page of `sidelight studio`.
import { render } from "preact";
import { App } from "./app.tsx";
import { connect } from "./state/store.ts";
import "./studio.css";

const place = document.getElementById("studio");
if (place !== null) {
  connect();
  render(<App />, place);
}
