// As json.mjs, with a parser that makes a bigint of each number.
import { parse, stringify } from 'lossless-json';

for (const text of process.argv.slice(2)) {
  console.log(stringify(parse(text, null, BigInt)));
}
