// Asks for a key that the document calls an integer, and prints it.
import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

declare const process: { argv: string[] };

const [address, text] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address });

const id: number = JSON.parse(text ?? "");
const { data } = await client.GET("/numbers/{id}", { params: { path: { id } } });
const received: number | undefined = data?.id;
console.log(received);
