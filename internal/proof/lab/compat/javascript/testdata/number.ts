declare const process: { argv: string[] };
declare const console: { log(text: string): void };

interface Order {
  id: number;
}

for (const text of process.argv.slice(2)) {
  const order: Order = JSON.parse(text);
  console.log(JSON.stringify(order));
}
