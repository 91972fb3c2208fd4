"use strict";
// Every table sorts by its heads, can be searched and saved as CSV, all within the page.
(() => {
  const FEW = 8; // so many rows need no search
  const NUMBER = /(∞)|([−+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)(?: × 10([⁰¹²³⁴⁵⁶⁷⁸⁹]+))?( %)?/;
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const order = new Intl.Collator("en-GB", { numeric: true, sensitivity: "base" });

  // A cell's text in parts, one for each line; a cut name is read in full.
  const partsOf = (cell) => {
    const parts = [""];
    const read = (node) => {
      if (node.nodeType === Node.TEXT_NODE) {
        parts[parts.length - 1] += node.data;
      } else if (node.matches("bdi[title]")) {
        parts[parts.length - 1] += node.title;
      } else if (!node.matches("summary, [aria-hidden]")) {
        const isApart = node.matches("div, p, li, .few, .method");
        if (isApart) parts.push("");
        node.childNodes.forEach(read);
        if (isApart) parts.push("");
      }
    };
    cell.childNodes.forEach(read);
    return parts.map((part) => part.replace(/\s+/g, " ").trim()).filter((part) => part !== "");
  };

  const valueOf = ([, endless, digits, power, percent]) => {
    if (endless) return Infinity;
    const exponent = power ? [...power].map((sign) => RAISED.indexOf(sign)).join("") : "0";
    const value = Number(`${digits.replace(/,/g, "").replace("−", "-")}`) * 10 ** Number(exponent);
    return percent ? value / 100 : value;
  };

  // What a cell is sorted by: its own key, its first number in a column of numbers, or its text.
  const keyOf = (cell, isNumber) => {
    if (cell.dataset.key) return cell.dataset.key === "inf" ? Infinity : Number(cell.dataset.key);
    const [text = ""] = partsOf(cell);
    if (!isNumber) return text === "–" ? "" : text;
    const match = text.match(NUMBER);
    if (!match) return "";
    const nudge = { below: 1 - 1e-9, over: 1 + 1e-9 }[text.split(" ")[0]] ?? 1;
    return valueOf(match) * nudge;
  };

  const compare = (first, second) => {
    if (typeof first === "number" && typeof second === "number") {
      return first === second ? 0 : first - second;
    }
    return order.compare(first, second);
  };

  // A number as programs read it; anything else stays as it is written.
  const plain = (text) => {
    if (text === "–") return "";
    const match = text.match(NUMBER);
    if (!match || match[0] !== text) return null;
    const [, endless, digits, power, percent] = match;
    if (endless) return "infinity";
    if (power) return `${digits}e${[...power].map((sign) => RAISED.indexOf(sign)).join("")}`;
    if (percent) return String(Number((valueOf(match)).toPrecision(12)));
    return digits.replace(/,/g, "").replace("−", "-");
  };

  // Names come from data: a spreadsheet must not take one for a formula.
  const field = (text, isNumber) => {
    const safe = !isNumber && /^[\s]*[=+\-@＝＋－＠\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n;']|^\s|\s$/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };

  // A column of numbers with remarks below them becomes two columns.
  const csvOf = (heads, rows) => {
    const cells = rows.map((row) => [...row.cells].map(partsOf));
    const columns = heads.flatMap((head, place) => {
      const said = cells.map((row) => row[place] ?? []);
      const isNumber = head.isNumber;
      const main = said.map((parts) => {
        const shown = isNumber ? parts[0] ?? "" : parts.join("; ");
        const number = isNumber || shown === "–" ? plain(shown) : null;
        return number === null ? field(shown, false) : field(number, true);
      });
      const column = [field(head.text, false), ...main];
      const remarks = said.map((parts) => field(parts.slice(1).join("; "), false));
      return isNumber && remarks.some(Boolean)
        ? [column, [field(`${head.text}: remark`, false), ...remarks]]
        : [column];
    });
    const lines = columns[0].map((_, place) => columns.map((column) => column[place]).join(","));
    return `\ufeff${lines.join("\r\n")}\r\n`; // the mark tells spreadsheets that it is UTF-8
  };

  const slug = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);

  const save = (name, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = `${slug(name)}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const element = (tag, fields, ...children) => {
    const made = Object.assign(document.createElement(tag), fields);
    made.append(...children);
    return made;
  };

  const labelOf = (table) => {
    const named = table.closest("[aria-label]")?.getAttribute("aria-label");
    const said = named ?? table.closest("section, header")?.querySelector("h1, h2")?.textContent ?? "table";
    return said.replace(/^Table(: | of )/, "");
  };

  const makeSortable = (table, heads, rows) => {
    const body = table.tBodies[0];
    const sort = (place) => {
      const { cell, isNumber } = heads[place];
      const next = { none: "ascending", ascending: "descending", descending: "none" };
      const way = next[cell.getAttribute("aria-sort") ?? "none"];
      heads.forEach((head) => head.cell.removeAttribute("aria-sort"));
      let sorted = rows;
      if (way !== "none") {
        cell.setAttribute("aria-sort", way);
        const sign = way === "ascending" ? 1 : -1;
        const keyed = rows.map((row) => [row.cells[place] ? keyOf(row.cells[place], isNumber) : "", row]);
        const missing = keyed.filter(([key]) => key === "");
        const present = keyed.filter(([key]) => key !== "").sort(([a], [b]) => sign * compare(a, b));
        sorted = [...present, ...missing].map(([, row]) => row); // what is missing comes last either way
      }
      table.classList.toggle("sorted", way !== "none");
      body.append(...sorted);
    };
    heads.forEach(({ cell }, place) => {
      const button = element("button", { type: "button", className: "sort" }, ...cell.childNodes);
      if (cell.dataset.term) {
        button.dataset.term = cell.dataset.term;
        button.setAttribute("aria-describedby", `meaning-${cell.dataset.term}`);
        delete cell.dataset.term;
      }
      button.addEventListener("click", () => sort(place));
      cell.append(button);
    });
  };

  const makeTools = (table, heads, rows) => {
    const label = labelOf(table);
    const body = table.tBodies[0];
    const tools = element("div", { className: "tools", role: "group" });
    tools.setAttribute("aria-label", `Tools: ${label}`);
    if (rows.length > FEW) {
      const box = element("input", { type: "search", placeholder: "Search rows" });
      box.setAttribute("aria-label", `Search: ${label}`);
      const count = element("output", { textContent: `${rows.length} rows` });
      let texts = null;
      const search = () => {
        texts ??= rows.map((row) => [...row.cells].map((cell) => partsOf(cell).join(" ")).join(" ").toLowerCase());
        const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
        let shown = 0;
        rows.forEach((row, place) => {
          row.hidden = !words.every((word) => texts[place].includes(word));
          shown += row.hidden ? 0 : 1;
        });
        count.textContent = words.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
        table.classList.toggle("searched", words.length > 0);
      };
      box.addEventListener("input", search);
      box.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        box.value = "";
        search();
      });
      tools.append(box, count);
    }
    const button = element("button", { type: "button", textContent: "Download CSV" });
    button.setAttribute("aria-label", `Download CSV: ${label}`);
    button.addEventListener("click", () => {
      const shown = [...body.rows, ...(table.tFoot?.rows ?? [])].filter((row) => !row.hidden);
      save(`${document.title} ${label}`, csvOf(heads, shown));
    });
    tools.append(button);
    (table.closest(".box") ?? table).before(tools);
  };

  for (const table of document.querySelectorAll("main table:not(.plain)")) {
    const top = table.tHead?.rows[0];
    if (!top || !table.tBodies.length) continue;
    const heads = [...top.cells].map((cell) => ({
      cell, text: partsOf(cell).join(" "), isNumber: cell.classList.contains("number"),
    }));
    const rows = [...table.tBodies[0].rows];
    if (rows.length > 1) makeSortable(table, heads, rows);
    makeTools(table, heads, rows);
  }
})();
