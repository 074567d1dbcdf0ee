// Prints what client.js makes of keys, and which texts and other values it takes for keys.
import { compare, key, sorted, time } from "./out/page/client.js";

const { keys, values } = JSON.parse(process.argv[2]);
const isKey = (value) => {
  try {
    return key(value) === value;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return false;
  }
};
console.log(JSON.stringify({
  sorted: sorted(keys.map(key)),
  milliseconds: keys.map((k) => time(k).getTime()),
  compared: keys.map((k, i) => Math.sign(compare(k, keys[keys.length - 1 - i]))),
  accepted: values.map(isKey),
}));
