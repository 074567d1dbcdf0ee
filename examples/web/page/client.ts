// Keys of 64 bits in TypeScript, and a client of the API. Browsers load client.js, which
// `tsc -p examples/web/page` makes of this file.

declare const table: unique symbol;
declare const form: unique symbol;

/**
 * The key of a row of table T, in decimal. It is a string because a number holds only 53 bits, and
 * a type of its own so that neither another string nor a key of another table compiles in its
 * place. Only tsc knows the type: at run time a key is a plain string.
 */
export type Key<T extends string = string> = string & { readonly [table]: T };

/** The public form of an order's key, for links: it reveals neither when the order was made nor how many there are. */
export type Name = string & { readonly [form]: "public" };

/** A row. id is the key that was sent, and received what JSON.parse made of it. */
export interface Row<T extends string> {
  readonly id: Key<T>;
  readonly received: string;
}
export interface Line extends Row<"line"> {
  readonly sku: string;
  readonly quantity: number;
}
export interface Order extends Row<"order"> {
  readonly name: Name;
  readonly customer: string;
  readonly lines: readonly Line[];
}
export interface Listed extends Row<"order"> {
  readonly name: Name;
  readonly customer: string;
  readonly lines: number;
}
export interface Page {
  readonly orders: readonly Listed[];
  readonly newer: boolean;
  readonly older: boolean;
}
export interface NewOrder {
  readonly customer: string;
  readonly lines: readonly { readonly sku: string; readonly quantity: number }[];
}

/** Returns value as a key, or throws a TypeError if it is not one. A number is not. */
export function key<T extends string>(value: unknown): Key<T> {
  if (typeof value !== "string" || !/^(0|[1-9]\d{0,18})$/.test(value) || BigInt(value) >= 1n << 63n) {
    throw new TypeError(`not a key: ${JSON.stringify(value)}`);
  }
  return value as Key<T>;
}

/** Compares keys by value, so that the older one comes first. a < b would compare text, where "9" > "10". */
export function compare<T extends string>(a: Key<T>, b: Key<NoInfer<T>>): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** Returns the keys in the order in which they were made. */
export function sorted<T extends string>(keys: Iterable<Key<T>>): Key<T>[] {
  return [...keys].sort(compare);
}

/** Returns when the key was made. The numbers are those of core.Default. */
export function time(id: Key): Date {
  return new Date(Number((BigInt(id) >> 22n) + 1735689600000n)); // milliseconds since 2025
}

/** How the server sends keys. Numbers are for the switch on the page, which shows what they lose. */
export type Sent = "strings" | "numbers";

/** The server refused the request and changed nothing. */
export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** No usable answer arrived, so an order may or may not be stored. Saving it again under the same name is safe. */
export class Lost extends Error {}

/** Returns a page of the list: the orders before a key, after a key, or the newest ones. */
export async function list(where: { before?: Key<"order">; after?: Key<"order"> }, keys: Sent): Promise<Page> {
  const { body } = await call("GET", `/api/orders?${new URLSearchParams({ ...where, keys })}`);
  return { ...body, orders: body.orders.map(row) };
}

/** Returns the order with this name, which may be anything that somebody typed. */
export async function open(name: string, keys: Sent): Promise<Order> {
  const { body } = await call("GET", `/api/orders/${encodeURIComponent(name)}?keys=${keys}`);
  return order(body);
}

/** Returns a name for an order that is not stored yet. */
export async function draft(): Promise<Name> {
  return (await call("POST", "/api/drafts")).body.name;
}

/** Saves an order under a name from draft. A repeated call finds the stored order, and created is false. */
export async function save(name: Name, content: NewOrder): Promise<{ created: boolean; order: Order }> {
  const { status, body } = await call("PUT", `/api/orders/${encodeURIComponent(name)}`, content);
  return { created: status === 201, order: order(body) };
}

// JSON.parse returns any. These functions give it its types.

function row<R extends { id: unknown; id_str?: unknown }, T extends string>(r: R): R & Row<T> {
  return { ...r, id: key<T>(r.id_str ?? r.id), received: String(r.id) };
}

function order(body: any): Order {
  return { ...row<any, "order">(body), lines: body.lines.map(row) };
}

async function call(method: string, path: string, content?: unknown): Promise<{ status: number; body: any }> {
  const request: RequestInit = { method, signal: AbortSignal.timeout(10_000) };
  if (content !== undefined) {
    request.body = JSON.stringify(content);
  }
  let answer: Response, body: any;
  try {
    answer = await fetch(path, request);
    body = await answer.json();
  } catch (cause) {
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
