"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const drawings = read("drawings");
  const palettes = read("palettes");
  const isDark = matchMedia("(prefers-color-scheme: dark)");
  const isNarrow = matchMedia("(max-width: 640px)");
  const settings = {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage"]],
  };

  // A colour is "@" and its name; names of attributes may look the same, so only colour fields are read.
  const paint = (node, palette, isColour) => {
    if (typeof node === "string") {
      return isColour && node.startsWith("@") ? palette[node.slice(1)] : node;
    }
    if (Array.isArray(node)) {
      return node.map((item) => paint(item, palette, isColour));
    }
    if (node === null || typeof node !== "object") {
      return node;
    }
    const fields = Object.entries(node).map(([key, value]) => [
      key,
      paint(value, palette, key.endsWith("color") || key.endsWith("colorscale")),
    ]);
    return Object.fromEntries(fields);
  };

  // A hover text is a list of the numbers of its lines, because many share them.
  const written = (node, lines) => node.every(Number.isInteger)
    ? node.map((number) => lines[number]).join("<br>")
    : node.map((part) => written(part, lines));

  for (const { data, lines } of Object.values(drawings)) {
    for (const trace of data.filter((item) => item.hovertext)) {
      trace.hovertext = written(trace.hovertext, lines);
    }
  }

  const draw = (theme, width) => {
    const drawn = Object.entries(drawings).map(([name, drawing]) => {
      const painted = paint(drawing, palettes[theme], false);
      const layout = (isNarrow.matches && !width && painted.narrow) || painted.layout;
      const size = width ? { width, autosize: false } : { autosize: true };
      return Plotly.react(`plot-${name}`, painted.data, { ...layout, ...size }, settings);
    });
    return Promise.all(drawn);
  };

  const drawForScreen = () => draw(isDark.matches ? "dark" : "light");
  isDark.addEventListener("change", drawForScreen);
  isNarrow.addEventListener("change", drawForScreen);
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details.fold").forEach((part) => { part.open = true; });
    draw("light", 680);
  });
  addEventListener("afterprint", drawForScreen);
  drawForScreen().then(() => { document.documentElement.dataset.drawn = "yes"; });
})();
