// Gets the order of each key, prints it, and saves it as it came.
const [url, ...keys] = process.argv.slice(2);
for (const key of keys) {
  const order = await (await fetch(`${url}/orders/${key}`)).json();
  const body = JSON.stringify(order);
  console.log(body);
  await fetch(`${url}/orders`, { method: 'POST', body });
}
