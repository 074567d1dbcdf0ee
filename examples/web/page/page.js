// The page shows one section of index.html at a time. Which one depends on the address.
import * as client from "./client.js";
/** Returns the element for a selector. It must be in index.html. */
function find(selector, within = document) {
    return within.querySelector(selector);
}
/** Returns a copy of the element in a template. */
function copy(template) {
    return find(template).content.firstElementChild.cloneNode(true);
}
function fill(selector, within, text) {
    const element = find(selector, within);
    element.textContent = String(text);
    return element;
}
// ---------------------------------------------------------------- keys
const numbers = find("#numbers");
const sent = () => (numbers.checked ? "numbers" : "strings");
/** Shows the key that JavaScript has, with its wrong digits marked, and below it the key that was sent. */
function showKey(element, row) {
    const digits = document.createElement("span");
    digits.className = "digits";
    for (const [i, digit] of [...row.received].entries()) {
        const mark = document.createElement(digit === row.id[i] ? "span" : "mark");
        mark.textContent = digit;
        digits.append(mark);
    }
    element.replaceChildren(digits);
    if (row.received !== row.id) {
        element.append(copy("#sent"));
        fill("small span", element, row.id);
    }
}
/** Says how many keys in a section differ from those that the server sent. */
function judge(section, rows) {
    const verdict = find(".verdict", section);
    verdict.hidden = !numbers.checked;
    const wrong = rows.filter((r) => r.received !== r.id).length;
    const left = new Set(rows.map((r) => r.received)).size;
    verdict.textContent =
        `As numbers, ${wrong} of ${rows.length} keys lost digits in JavaScript. The wrong digits are marked; below is what was sent.` +
            (left < rows.length ? ` ${rows.length} keys have become ${left} number${left === 1 ? "" : "s"}.` : "");
}
function showTime(element, id) {
    const iso = client.time(id).toISOString();
    element.setAttribute("datetime", iso);
    element.textContent = iso.replace("T", " ").replace("Z", "");
}
// ---------------------------------------------------------------- sections
let pending = 0;
/** Fades the page while work is pending, if it takes long. */
function busy(work) {
    const fade = (change) => find("main").classList.toggle("busy", (pending += change) > 0);
    fade(1);
    return work.finally(() => fade(-1));
}
function show(id, title) {
    for (const section of document.querySelectorAll("main > section")) {
        section.hidden = section.id !== id;
    }
    document.title = title;
    say("good", "");
    return find(`#${id}`);
}
const message = find("#message");
/** Shows a message below the section, with a button for each action. Focus moves from an old button to a new one. */
function say(kind, text, actions = {}) {
    const focused = message.contains(document.activeElement);
    message.className = kind;
    fill("p", message, text);
    find(".actions", message).replaceChildren(...Object.entries(actions).map(([label, act]) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = label;
        button.addEventListener("click", act);
        return button;
    }));
    if (focused)
        message.querySelector("button")?.focus();
}
async function showList(where) {
    const cursor = Object.fromEntries(where); // the server checks them
    const page = await client.list(cursor, sent());
    if (where.size > 0 && page.orders.length === 0)
        return showList(new URLSearchParams()); // beyond the end
    return () => {
        const [first, last] = [page.orders.at(0), page.orders.at(-1)];
        if (!first || !last) {
            show("empty", "Orders");
            return;
        }
        const section = show("list", "Orders");
        judge(section, page.orders);
        find("ol", section).replaceChildren(...page.orders.map((o) => {
            const item = copy("#listed");
            fill("a", item, o.customer).setAttribute("href", `/orders/${o.name}`);
            fill(".lines", item, o.lines === 1 ? "1 line" : `${o.lines} lines`);
            showTime(find("time", item), o.id);
            showKey(find(".key", item), o);
            return item;
        }));
        link(find(".newer", section), page.newer, `/?after=${first.id}`);
        link(find(".older", section), page.older, `/?before=${last.id}`);
    };
}
function link(element, there, href) {
    element.hidden = !there;
    element.setAttribute("href", href);
}
async function showOrder(name) {
    const order = await client.open(name, sent());
    return () => {
        const section = show("order", `Order of ${order.customer}`);
        fill("h1", section, `Order of ${order.customer}`);
        judge(section, [order, ...order.lines]);
        fill(".name", section, order.name);
        showKey(find(".key", section), order);
        showTime(find("time", section), order.id);
        find("tbody", section).replaceChildren(...order.lines.map((l) => {
            const line = copy("#stored");
            fill(".sku", line, l.sku);
            fill(".quantity", line, l.quantity);
            showKey(find(".key", line), l);
            return line;
        }));
    };
}
// ---------------------------------------------------------------- the form
const form = find("form");
const lines = find("ul", form);
/** The name of the order in the form, requested by the first save. Every later save uses it too. */
let draft;
let saved = "";
function addLine() {
    const line = copy("#line");
    find(".remove", line).addEventListener("click", () => {
        const next = line.nextElementSibling ?? line.previousElementSibling;
        line.remove();
        next?.querySelector("input")?.focus();
    });
    lines.append(line);
    return line;
}
function showForm() {
    if (saved)
        clearForm();
    show("new", "New order");
}
function clearForm() {
    form.reset();
    lines.replaceChildren();
    addLine();
    anew();
}
/** Makes the next save that of another order. */
function anew() {
    draft = undefined;
    saved = "";
}
async function save() {
    const content = {
        customer: find("[name=customer]", form).value,
        lines: [...lines.children].map((line) => ({
            sku: find("[name=sku]", line).value,
            quantity: find("[name=quantity]", line).valueAsNumber,
        })),
    };
    const name = (draft ??= client.draft().catch((error) => {
        draft = undefined; // so that the next save requests it again
        throw error;
    }));
    try {
        const { created, order } = await busy(name.then((n) => client.save(n, content)));
        if (name !== draft)
            return; // the form has another order by now
        saved = created && saved !== "again" ? "once" : "again"; // the answers may come in any order
        const text = saved === "once" ? "Saved." : "Saved twice, stored once: the order had the same key both times.";
        say("good", text, { "Open the order": () => go(`/orders/${order.name}`), "Enter another": () => go("/new") });
    }
    catch (error) {
        if (error instanceof client.Lost) {
            say("bad", `${error.message} What you have entered is still here.`, { "Try again": save });
        }
        else if (error instanceof client.Refused && error.status === 409) {
            say("bad", "This order is stored already, as it was before you changed it.", {
                "Save as another order": () => (anew(), save()),
            });
        }
        else if (error instanceof client.Refused) {
            say("bad", `Not saved: ${error.message}.`);
        }
        else {
            throw error;
        }
    }
}
// ---------------------------------------------------------------- navigation
let turn = 0;
/** Shows the section for the current address. If two calls overlap, the later one wins. */
async function route(focus) {
    const mine = ++turn;
    const { pathname, search } = location;
    const name = pathname.replace("/orders/", "");
    let render;
    try {
        render = pathname === "/new" ? showForm : await busy(pathname === "/" ? showList(new URLSearchParams(search)) : showOrder(name));
    }
    catch (error) {
        if (error instanceof client.Lost) {
            const text = error.message;
            render = () => say("bad", text, { "Try again": () => void route(true) });
            focus = false;
        }
        else if (error instanceof client.Refused) {
            render = () => fill(".name", show("unknown", "No such order"), name + search);
        }
        else {
            throw error;
        }
    }
    if (mine === turn) {
        render();
        if (focus)
            find("section:not([hidden]) h1").focus();
    }
}
function go(href) {
    history.pushState(null, "", href);
    void route(true);
}
document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link && link.origin === location.origin && event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)) {
        event.preventDefault();
        go(link.href);
    }
});
addEventListener("popstate", () => void route(true));
numbers.addEventListener("change", () => void (location.pathname === "/new" || route(false)));
find(".add", form).addEventListener("click", () => find("input", addLine()).focus());
form.addEventListener("submit", (event) => {
    event.preventDefault();
    void save();
});
clearForm();
void route(false);
