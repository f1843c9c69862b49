"use strict";
(() => {
  const one = (id) => document.getElementById(id);

  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("passgate-theme");
      localStorage.setItem("passgate-theme", value);
    } catch {
      // Pages from disk may have no storage.
    }
    return value;
  };
  const themes = ["system", "light", "dark"];
  let theme = stored() || "system";
  const button = one("theme");
  const paint = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  if (button) {
    if (!themes.includes(theme)) theme = "system";
    button.hidden = false;
    paint();
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      stored(theme);
      paint();
    });
  }

  const reveal = () => {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      // The hash is the id as it is.
    }
    const target = id && one(id);
    if (!target) return;
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
      if (node.tagName === "TR") node.hidden = false;
    }
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  };
  addEventListener("hashchange", reveal);
  reveal();

  for (const copy of document.querySelectorAll("button.copy")) {
    if (!navigator.clipboard) continue;
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(copy.previousElementSibling.textContent);
      copy.textContent = "Copied";
    });
  }

  const search = one("search");
  if (search) {
    const sections = [...document.querySelectorAll("section.task")];
    const look = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      for (const section of sections) {
        let here = 0;
        for (const trial of section.querySelectorAll("article")) {
          const text = trial.textContent.toLowerCase();
          trial.hidden = !words.every((word) => text.includes(word));
          if (trial.hidden) continue;
          here += 1;
          const around = words.length > 0 ? trial.closest("details.more") : null;
          if (around) around.open = true;
        }
        section.hidden = words.length > 0 && here === 0;
        found += here;
      }
      one("found").textContent = words.length > 0 ? `${found} trial${found === 1 ? "" : "s"} found` : "";
    };
    one("search-bar").hidden = false;
    search.addEventListener("input", look);
  }

  const table = one("task-table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
  };
  const sortable = (column) => rows.length > 0 && (rows[0].cells[column].dataset.v !== undefined || column === 1);
  heads.forEach((head, column) => {
    if (!sortable(column)) return;
    const sort = document.createElement("button");
    sort.type = "button";
    sort.textContent = head.textContent;
    head.replaceChildren(sort);
    sort.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const order = (a, b) => {
        const [left, right] = [valueOf(a, column), valueOf(b, column)];
        const compared = typeof left === "number" ? left - right : left.localeCompare(right);
        return up ? compared : -compared;
      };
      body.append(...[...rows].sort(order));
    });
  });

  const [query, bySuite, byState, count] = ["query", "by-suite", "by-state", "count"].map(one);
  const texts = new Map(rows.map((row) => [row, row.cells[1].textContent.toLowerCase()]));
  const filter = () => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const states = row.dataset.state.split(" ");
      row.hidden =
        !words.every((word) => texts.get(row).includes(word)) ||
        (bySuite.value !== "" && row.dataset.suite !== bySuite.value) ||
        (byState.value !== "" && !states.includes(byState.value));
      if (!row.hidden) left += 1;
    }
    count.textContent = `${left} of ${rows.length} tasks`;
  };
  one("filter").hidden = false;
  for (const input of [query, bySuite, byState]) input.addEventListener("input", filter);
  filter();
})();
