// Reads messages of the type Keys with several libraries. It prints, for each library and
// message, the type and the text of what the key is there, and the message that it sends for it,
// unless it is a number.
import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import google3 from 'google-protobuf-3';
import google4 from 'google-protobuf';
import protobufjs from 'protobufjs';

const { source, descriptors, messages } = JSON.parse(process.argv[2]);
const bytes = (base64) => new Uint8Array(Buffer.from(base64, 'base64'));

const js = protobufjs.parse(source).root.lookupType('shop.Keys');
const es = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes(descriptors))).getMessage('shop.Keys');

const jsObject = (longs) => ({
  read: (wire) => js.toObject(js.decode(wire), { longs }).int64,
  write: (int64) => js.encode(js.fromObject({ int64 })).finish(),
});

// The code that protoc-gen-js generates calls one of these methods for a field.
const google = (jspb, method) => ({
  read: (wire) => {
    const reader = new jspb.BinaryReader(wire);
    reader.nextField();
    return reader['read' + method]();
  },
  write: (key) => {
    const writer = new jspb.BinaryWriter();
    writer['write' + method](1, key);
    return writer.getResultBuffer();
  },
});

const libraries = {
  'protobufjs': {
    read: (wire) => js.decode(wire).int64,
    write: (int64) => js.encode({ int64 }).finish(),
  },
  'protobufjs, longs: Number': jsObject(Number),
  'protobufjs, longs: String': jsObject(String),
  'protobufjs, longs: BigInt': jsObject(BigInt),
  'protobuf-es': {
    read: (wire) => fromBinary(es, wire).int64,
    write: (int64) => toBinary(es, create(es, { int64 })),
  },
  'protobuf-es, JS_STRING': {
    read: (wire) => fromBinary(es, wire).jsString,
    write: (int64) => toBinary(es, create(es, { int64 })),
  },
  'google-protobuf 3': google(google3, 'Int64'),
  'google-protobuf 3, JS_STRING': google(google3, 'Int64String'),
  'google-protobuf 4': google(google4, 'Int64'),
  'google-protobuf 4, JS_STRING': google(google4, 'Int64String'),
};

const results = {};
for (const [name, { read, write }] of Object.entries(libraries)) {
  results[name] = messages.map((message) => {
    const key = read(bytes(message));
    const sent = typeof key === 'number' ? null : Buffer.from(write(key)).toString('base64');
    return { type: typeof key, text: String(key), sent };
  });
}
console.log(JSON.stringify(results));
