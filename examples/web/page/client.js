// Keys of 64 bits in TypeScript, and a client of the API. Browsers load client.js, which
// `tsc -p examples/web/page` makes of this file.
/** Returns value as a key, or throws a TypeError if it is not one. A number is not. */
export function key(value) {
    if (typeof value !== "string" || !/^(0|[1-9]\d{0,18})$/.test(value) || BigInt(value) >= 1n << 63n) {
        throw new TypeError(`not a key: ${JSON.stringify(value)}`);
    }
    return value;
}
/** Compares keys by value, so that the older one comes first. a < b would compare text, where "9" > "10". */
export function compare(a, b) {
    return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}
/** Returns the keys in the order in which they were made. */
export function sorted(keys) {
    return [...keys].sort(compare);
}
/** Returns when the key was made. The numbers are those of core.Default. */
export function time(id) {
    return new Date(Number((BigInt(id) >> 22n) + 1735689600000n)); // milliseconds since 2025
}
/** The server refused the request and changed nothing. */
export class Refused extends Error {
    status;
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}
/** No usable answer arrived, so an order may or may not be stored. Saving it again under the same name is safe. */
export class Lost extends Error {
}
/** Returns a page of the list: the orders before a key, after a key, or the newest ones. */
export async function list(where, keys) {
    const { body } = await call("GET", `/api/orders?${new URLSearchParams({ ...where, keys })}`);
    return { ...body, orders: body.orders.map(row) };
}
/** Returns the order with this name, which may be anything that somebody typed. */
export async function open(name, keys) {
    const { body } = await call("GET", `/api/orders/${encodeURIComponent(name)}?keys=${keys}`);
    return order(body);
}
/** Returns a name for an order that is not stored yet. */
export async function draft() {
    return (await call("POST", "/api/drafts")).body.name;
}
/** Saves an order under a name from draft. A repeated call finds the stored order, and created is false. */
export async function save(name, content) {
    const { status, body } = await call("PUT", `/api/orders/${encodeURIComponent(name)}`, content);
    return { created: status === 201, order: order(body) };
}
// JSON.parse returns any. These functions give it its types.
function row(r) {
    return { ...r, id: key(r.id_str ?? r.id), received: String(r.id) };
}
function order(body) {
    return { ...row(body), lines: body.lines.map(row) };
}
async function call(method, path, content) {
    const request = { method, signal: AbortSignal.timeout(10_000) };
    if (content !== undefined) {
        request.body = JSON.stringify(content);
    }
    let answer, body;
    try {
        answer = await fetch(path, request);
        body = await answer.json();
    }
    catch (cause) {
        throw new Lost("Connection lost: the server does not answer.", { cause });
    }
    if (answer.status >= 500) {
        throw new Lost("The server has failed.");
    }
    if (!answer.ok) {
        throw new Refused(answer.status, body.error);
    }
    return { status: answer.status, body };
}
