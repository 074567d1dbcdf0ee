declare const process: { argv: string[] };
declare const console: { log(text: string): void };

type Key<Table extends string> = string & { readonly table: Table };

interface Order {
  id: Key<'orders'>;
  customer_id: Key<'customers'>;
}

function find(id: Key<'orders'>): Key<'orders'> {
  return id;
}

for (const text of process.argv.slice(2)) {
  const order: Order = JSON.parse(text);
  console.log(JSON.stringify({ ...order, id: find(order.id) }));
}

// What must not compile. Each comment is an error of tsc unless the next line is one.
function mistakes(order: Order): void {
  // @ts-expect-error
  const id: number = order.id;
  // @ts-expect-error
  Math.max(order.id, 0);
  // @ts-expect-error
  order.id - 1;
  // @ts-expect-error
  find(1234567890123456789);
  // @ts-expect-error
  find(order.customer_id);
}
