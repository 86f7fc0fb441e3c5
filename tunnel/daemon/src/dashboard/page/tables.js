"use strict";
// What stands around the chart: tables, alerts, events, the list of peers and the status line. script.js comes after it.

/* Tables */

/** Fills a table: columns are [heading, class], rows lists of nodes or texts, the first of which names the row. */
function table(id, columns, rows) {
  const head = make("tr", {}, ...columns.map(([heading, kind]) => make("th", { scope: "col", class: kind ?? "" }, heading)));
  const cell = (value, index) => (index === 0 ? make("th", { scope: "row" }, value)
    : make("td", { class: columns[index][1] ?? "", "data-label": columns[index][0] }, ...(value === "" ? [] : [value])));
  element(id).replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))));
}

/** How much of its quota a path has used: "41 GB of 50 GB until 2026-12-01". */
function quota(status) {
  if (!status) return "";
  const until = new Date(status.resets_unix_ms).toISOString().slice(0, 10);
  return `${status.exceeded ? "over quota: " : ""}${bytes(status.used_bytes)} of ${bytes(status.limit_bytes)} until ${until}`;
}

function pathTable() {
  const index = cursorIndex();
  const isNow = page.cursor == null;
  element("at").textContent = isNow ? "" : `at ${when(page.from + index * page.step)}`;
  const present = subjects().flatMap((peer) => peer.paths.map((path) => ({ peer: peerName(peer), path: path.name })));
  const gone = paths().filter((series) => series.path != null && !present.some((it) => keyOf(it) === keyOf(series)));
  const rows = isOfOne() ? [...present, ...gone].map((key) => pathRow(key, index, isNow)) : [];
  table("paths", [["Path"], ["State"], ["Sent", "number"], ["Received", "number"], ["Can carry", "number"], ["RTT", "number"], ["Queue", "number"], ["Loss", "number"], ["By way of", "wide"]], rows);
  const unrecorded = present.filter((key) => !page.series.has(keyOf(key))).length;
  element("unrecorded").textContent = isOfOne() && page.steps && unrecorded ? `The history keeps 32 series, and ${unrecorded} of these paths are not among them: their numbers are those of now.` : "";
}

function pathRow(key, index, isNow) {
  const [series, path] = [page.series.get(keyOf(key)), pathOf(key)];
  const at = (field) => series?.[field][index];
  const value = (field, present) => (isSilent() && isNow ? null : series ? at(field) : isNow ? present : null);
  const state = isSilent() && isNow ? "no data" : (isNow ? path?.condition : at("state")) ?? "absent";
  const uses = [path?.metered && "metered", path?.secondary && "secondary", quota(path?.quota), path?.interface, path?.remote].filter(Boolean).join(", ");
  const loss = value("loss_ratio", path?.loss_ratio);
  // Nothing goes by a path that is down.
  const flow = (field) => rate(value(field, path?.[field]) || (state === "down" ? null : value(field, path?.[field])));
  return [key.path, stateWord(state, isNow && path?.since_unix_ms), flow("send_rate_bps"), flow("receive_rate_bps"),
    rate(isNow && !isSilent() ? path?.capacity_bps : null), number(value("rtt_ms", path?.srtt_ms), "ms"), number(value("queue_ms", null), "ms"),
    number(loss == null ? null : loss * 100, "%"), uses];
}

/** A state with its shape, and the time since when it holds. */
const stateWord = (state, since) => make("span", { class: `state ${state.replace(" ", "-")}`, ...(since ? { title: `since ${moment(since)}` } : {}) }, state.replace("-", " "));
/** A time, with the day if it is not today. */
const moment = (unixMs) => {
  const time = unixMs / 1000;
  return day(time) === day(now()) ? clock(time, true) : `${day(time)} ${clock(time)}`;
};

function totals() {
  const sum = sumSeries();
  const index = cursorIndex();
  const all = subjects().flatMap((peer) => peer.paths);
  const up = all.filter((path) => path.state === "up").length;
  const value = (text) => (page.cursor == null && isSilent() ? "–" : text);
  const [sent, received] = ["send_rate_bps", "receive_rate_bps"].map((field) => (sum ? sum[field][index] : all.reduce((sum, path) => sum + path[field], 0)));
  const items = [["Sent", value(rate(sent))], ["Received", value(rate(received))],
    ["Round trip of the fastest path", value(number(sum ? sum.rtt_ms[index] : subjects()[0] && fastest(subjects()[0]), "ms"))], ["Paths up", isSilent() ? "–" : `${up} of ${all.length}`]];
  if (!isOfOne()) items.push(["Peers reached", isSilent() ? "–" : `${page.status.peers.filter((peer) => peer.condition === "up" || peer.condition === "degraded").length} of ${page.status.peers.length}`]);
  element("totals").replaceChildren(...items.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

const least = (values) => (values.length ? Math.min(...values) : null);
const fastest = (peer) => least(peer.paths.map((path) => path.srtt_ms).filter((srtt) => srtt != null));
const worstLoss = (peer) => { const losses = peer.paths.map((path) => path.loss_ratio).filter((loss) => loss != null); return losses.length ? Math.max(...losses) * 100 : null; };

/* Alerts */

/** "site-1, site-2, site-3 and 17 more". */
function listed(names) {
  const shown = names.slice(0, NAMES).join(", ");
  return names.length > NAMES ? `${shown} and ${names.length - NAMES} more` : shown;
}
const nameOf = (peer) => shortened(peer.name ?? peerName(peer).slice(0, 8), 40);

/** What is wrong, worst first: { level, title, text, remedy }. What several peers show together is one. */
function troubles() {
  const found = [];
  const several = page.status.peers.length > 1;
  const lost = page.status.peers.filter((peer) => peer.condition === "lost" && subjects().includes(peer));
  for (const group of together(lost, (peer) => causeKey(peer.paths[0]), (peer) => peer.since_unix_ms)) {
    const [peer] = group;
    const cause = peer.paths.map((path) => path.cause).find(Boolean);
    const since = peer.since_unix_ms ? ` since ${moment(peer.since_unix_ms)}` : "";
    const title = group.length > 1 ? `${group.length} peers are lost${since}: ${listed(group.map(nameOf))}` : several ? `${nameOf(peer)} is lost${since} (${counted(peer.paths.length, "path")})` : null;
    if (title) found.push({ level: "down", title, text: cause?.text, remedy: cause?.remedy });
  }
  const isTold = (peer) => several && peer.condition === "lost";
  const ailing = subjects().filter((peer) => !isTold(peer)).flatMap((peer) => peer.paths.filter((path) => ["down", "degraded", "flapping", "validating"].includes(path.condition)).map((path) => ({ peer, path })));
  for (const group of together(ailing, ({ path }) => [path.name, path.condition, causeKey(path)].join(), ({ path }) => path.since_unix_ms)) {
    const [{ peer, path }] = group;
    const where = !several || page.peer != null ? "" : group.length > 1 ? ` at ${group.length} peers: ${listed(group.map((it) => nameOf(it.peer)))}` : ` at ${nameOf(peer)}`;
    const since = path.since_unix_ms && where ? `, since ${moment(path.since_unix_ms)}` : "";
    found.push({ level: path.condition, title: `${path.name} is ${path.condition}${where}${since}`, text: path.cause?.text, remedy: path.cause?.remedy });
  }
  for (const peer of subjects().filter((peer) => peer.controller_failure)) {
    found.push({ level: "degraded", title: `CUBIC controls the paths${several ? ` of ${nameOf(peer)}` : ""}`, text: `the policy failed: ${peer.controller_failure}` });
  }
  for (const notice of page.peer == null ? page.status.notices.filter((notice) => notice.level !== "info") : []) {
    found.push({ level: "degraded", title: "On this host", text: notice.text, remedy: notice.remedy });
  }
  return found.sort((a, b) => severity(a.level) - severity(b.level));
}
const severity = (level) => ["no-data", "down", "flapping", "degraded", "validating"].indexOf(level);
const causeKey = (path) => path?.cause?.kind ?? "";
const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** Groups of what has the same key, and began at about the same time. */
function together(items, key, since) {
  const groups = [];
  for (const item of items) {
    const near = (group) => key(group[0]) === key(item) && Math.abs((since(group[0]) ?? 0) - (since(item) ?? 0)) <= TOGETHER;
    const group = groups.find(near);
    if (group) group.push(item); else groups.push([item]);
  }
  return groups;
}

function alertItem({ level, title, text, remedy }) {
  const item = make("li", { class: level }, make("b", {}, title));
  if (text) item.append(`: ${text}`);
  if (remedy) item.append(make("div", { class: "remedy" }, "To fix it: ", ...prose(remedy)));
  return item;
}

/** Shows what is wrong, says it to screen readers when it changes, and puts it into the title. */
function alerts() {
  const found = troubles();
  if (isSilent()) {
    const since = clock(now() - (performance.now() - page.heard) / 1000, true);
    found.unshift({ level: "no-data", title: `No data since ${since}`, text: "the daemon has ended, or this computer cannot reach it. What follows is older" });
  }
  const [shown, more] = [found.slice(0, ALERTS), found.slice(ALERTS)];
  const rest = more.length ? [make("li", { class: "more" }, make("details", {}, make("summary", {}, `and ${more.length} more`), make("ul", {}, ...more.map(alertItem))))] : [];
  const text = JSON.stringify(found);
  if (text === alerts.shown) return;
  alerts.shown = text;
  element("alerts").replaceChildren(...shown.map(alertItem), ...rest);
  element("announcement").textContent = found.length ? `${counted(found.length, "alert")}: ${found[0].title}` : "No alerts";
  const serious = found.filter((it) => it.level !== "validating");
  const { name } = page.status.interface;
  document.title = `${serious.length ? `(${isSilent() ? "no data" : serious.length}) ` : ""}${page.peer == null ? "" : `${shortName(page.peer)} – `}${name} – Ropewalk`;
  element("icon").href = element("icon").href.replace(/fill='[^']*'/, `fill='${serious.length ? "%23d55e00" : "%23009e73"}'`);
  document.body.classList.toggle("silent", isSilent());
}

const subject = (event) => [event.peer_name, event.path].filter(Boolean).join(" · ") || (event.peer ? `peer ${event.peer.slice(0, 8)}` : "");

function events() {
  const own = page.events.filter((event) => page.peer == null || event.peer == null || event.peer === page.peer);
  const items = [...own].reverse().slice(0, 200).map((event) => {
    const time = event.unix_ms / 1000;
    const text = make("span", {}, make("b", {}, subject(event) || event.kind), ` ${event.message}`);
    if (event.remedy) text.append(make("div", { class: "remedy" }, "To fix it: ", ...prose(event.remedy)));
    return make("li", { class: event.level }, make("time", { datetime: new Date(event.unix_ms).toISOString() }, `${day(time)} ${clock(time, true)}`), text);
  });
  element("events").replaceChildren(...(items.length ? items : [make("li", {}, "none yet")]));
}

/** One row for each peer that the search finds, the worst first. */
function peers() {
  const all = page.status?.peers ?? [];
  element("overview").hidden = isOfOne();
  element("back").hidden = page.peer == null;
  element("h-paths").parentElement.hidden = !isOfOne();
  if (isOfOne()) return;
  const words = page.search.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (peer) => [peer.name, peerName(peer), peer.condition, ...peer.allowed_ips, ...peer.paths.flatMap((path) => [path.name, path.remote])].join(" ").toLowerCase();
  const found = all.filter((peer) => words.every((word) => text(peer).includes(word)));
  const rank = (peer) => ["lost", "degraded", "connecting", "up"].indexOf(peer.condition);
  found.sort((a, b) => rank(a) - rank(b));
  element("found").textContent = words.length ? `${found.length} of ${all.length} peers` : counted(all.length, "peer");
  table("peers", [["Peer", "wide"], ["State"], ["Paths up", "number"], ["Sent", "number"], ["Received", "number"], ["RTT", "number"], ["Loss", "number"], ["Since"]], found.slice(0, 1000).map(peerRow));
}

function peerRow(peer) {
  const silent = isSilent();
  const works = peer.paths.some((path) => path.state === "up");
  const sum = (field) => rate(works && !silent ? peer.paths.reduce((sum, path) => sum + path[field], 0) : null);
  const link = make("a", { href: `#${page.range.seconds}&peer=${encodeURIComponent(peerName(peer))}`, title: peerName(peer) }, nameOf(peer));
  return [link, stateWord(silent ? "no data" : peer.condition), silent ? "–" : `${peer.paths.filter((path) => path.state === "up").length} of ${peer.paths.length}`,
    sum("send_rate_bps"), sum("receive_rate_bps"), number(silent ? null : fastest(peer), "ms"), number(silent ? null : worstLoss(peer), "%"), peer.since_unix_ms ? moment(peer.since_unix_ms) : "–"];
}

function status() {
  const { interface: device, mode, uptime_s: uptime } = page.status;
  const [peer] = subjects();
  const names = page.peer == null || !peer ? device.name : `${nameOf(peer)} – ${device.name}`;
  element("name").textContent = names;
  const session = isOfOne() && peer ? [peer.handshake_age_ms == null ? "no handshake yet" : `handshake ${span(peer.handshake_age_ms / 1000)} ago`, peer.cipher, peer.allowed_ips.join(", ")] : [];
  const parts = [device.addresses.join(", "), mode === "mpt" ? "MPT, not encrypted" : "encrypted", `up for ${span(uptime)}`, ...session];
  element("summary").textContent = parts.filter(Boolean).join(" · ");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const difference = Math.abs(page.ahead) < 60 ? Math.abs(page.ahead) : 60 * Math.round(Math.abs(page.ahead) / 60);
  const off = difference > CLOCK_DIFFERENCE ? ` This computer's clock is ${span(difference)} ${page.ahead < 0 ? "ahead" : "behind"}.` : "";
  element("zone").textContent = `Times are by the clock of the tunnel's host, in the zone of this browser (${zone}).${off}`;
}
