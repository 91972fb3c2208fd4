"use strict";
// What the figures of sidelight.report use, and no more: bars, heat maps and scatter plots on plain axes.
const { register } = require("plotly.js/src/registry");
const api = require("plotly.js/src/plot_api");

require("plotly.js/build/plotcss");
Object.entries(api).forEach(([name, fn]) => register({ moduleType: "apiMethod", name, fn }));
register([
  require("plotly.js/src/traces/scatter"),
  require("plotly.js/src/traces/bar"),
  require("plotly.js/src/traces/heatmap"),
  require("plotly.js/src/components/annotations"),
  require("plotly.js/src/components/selections"),
  require("plotly.js/src/components/shapes"),
  require("plotly.js/src/components/errorbars"),
  require("plotly.js/src/components/colorscale"),
  require("plotly.js/src/components/colorbar"),
  require("plotly.js/src/components/legend"),
  require("plotly.js/src/components/fx"),
  require("plotly.js/src/components/modebar"),
  require("plotly.js/src/locale-en"),
  require("plotly.js/src/locale-en-us"),
]);

module.exports = { version: require("plotly.js/src/version").version, react: api.react };
