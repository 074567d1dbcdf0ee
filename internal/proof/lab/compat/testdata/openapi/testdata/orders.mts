// Sends each order of its arguments to the server, whose address comes first, and prints what
// the server says that it has.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

declare const process: { argv: string[] };

const [address, ...texts] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address });

for (const text of texts) {
  const order: components["schemas"]["Order"] = JSON.parse(text);
  const sent = await client.POST("/orders", { body: order });
  if (!sent.data) throw new Error(`POST: ${sent.response.status}`);
  const { id, customerId, parentId, lines } = sent.data;

  const path = await client.GET("/orders/{id}", { params: { path: { id } } });
  const query = await client.GET("/orders", { params: { query: { ids: [id] } } });
  if (path.data?.id !== id || query.data?.[0]?.id !== id) throw new Error(`GET ${id}: ${path.data?.id}`);
  console.log(JSON.stringify({ id, customerId, parentId, lines }));
}

// @ts-expect-error A number is no key.
export const number: components["schemas"]["Snowflake"] = 5;
// @ts-expect-error Nor is null, in a column that has always one.
export const absent: components["schemas"]["Snowflake"] = null;
export const nullable: components["schemas"]["NullSnowflake"] = null;
