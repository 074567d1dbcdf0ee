// Each line that follows an @ts-expect-error is a mistake that tsc finds. If it finds none there, it
// says so.

import * as client from "./page/client.js";

declare const order: client.Order, line: client.Line;

const some: client.Key = order.id; // a function may take the key of any table
const text: string = order.id;
client.compare(order.id, client.key(text));
client.time(line.id);
void client.list({ before: order.id }, "strings");

// @ts-expect-error any text
client.compare(order.id, "251476847740661760");
// @ts-expect-error a key of another table
client.compare(order.id, line.id);
// @ts-expect-error a key of another table
void client.list({ after: line.id }, "strings");
// @ts-expect-error a key of some table
void client.list({ after: some }, "strings");
// @ts-expect-error a number
client.time(251476847740661760);
// @ts-expect-error a key in place of its public form
void client.save(order.id, { customer: "", lines: [] });
// @ts-expect-error a public form in place of the key
client.time(order.name);
// @ts-expect-error arithmetic
order.id - 1;
// @ts-expect-error a number is not even the parameter of a comparison
order.id > 5;
