// Reads orders in binary and prints, for each, what the program would send back: an error of the
// library, or the order that it read.
import avro from 'avsc';
import { readFileSync } from 'node:fs';

const schema = JSON.parse(readFileSync('order.avsc'));

// A long as a bigint, in 8 bytes of little endian when avsc hands it over.
const bigint = avro.types.LongType.__with({
  fromBuffer: (bytes) => bytes.readBigInt64LE(),
  toBuffer: (n) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(n);
    return bytes;
  },
  fromJSON: BigInt,
  toJSON: String,
  isValid: (n) => typeof n === 'bigint',
  compare: (a, b) => (a < b ? -1 : a > b ? 1 : 0),
});

const [longs, ...orders] = process.argv.slice(2);
const type = avro.Type.forSchema(schema, { registry: longs === 'bigint' ? { long: bigint } : {} });
for (const hex of orders) {
  try {
    console.log(type.toBuffer(type.fromBuffer(Buffer.from(hex, 'hex'))).toString('hex'));
  } catch (error) {
    console.log(error.message);
  }
}
