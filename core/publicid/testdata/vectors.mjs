// Writes vectors.json: the public form as doc.go describes it, without anything of the package.
//
//	node core/publicid/testdata/vectors.mjs > core/publicid/testdata/vectors.json

import { createCipheriv, createHash, createHmac } from "node:crypto";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

function base62(n) {
  let text = "";
  for (; n > 0n; n /= 62n) text = digits[Number(n % 62n)] + text;
  return text.padStart(22, "0");
}

function number(bytes) {
  return BigInt("0x" + bytes.toString("hex"));
}

function nameOf(key) {
  const mac = createHmac("sha256", key).update("snowkey publicid key name").digest();
  return digits[Number(number(mac.subarray(0, 8)) % 62n)];
}

function tagOf(prefix) {
  return createHash("sha256").update("snowkey publicid prefix " + prefix).digest().subarray(0, 8);
}

function blockOf(key, id, tag) {
  const head = Buffer.alloc(8);
  head.writeBigInt64BE(id);
  const aes = createCipheriv(key.length === 16 ? "aes-128-ecb" : "aes-256-ecb", key, null).setAutoPadding(false);
  return number(Buffer.concat([aes.update(Buffer.concat([head, tag])), aes.final()]));
}

const keys = [
  "00000000000000000000000000000000",
  "000102030405060708090a0b0c0d0e0f",
  "2b7e151628aed2a6abf7158809cf4f3c",
  "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
  "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
].map((hex) => Buffer.from(hex, "hex"));
const prefixes = ["order", "customer", "o", "order_item", "Order", "a-b.c~d_", "p".repeat(40)];
const ids = [
  0n, 1n, 2n, 61n, 62n, 255n, 256n, 2n ** 32n, 2n ** 53n, 2n ** 53n + 1n, 175928847299117063n, 250134256414617600n,
  250134256414617601n, 1541815603606036480n, 2n ** 62n, 2n ** 63n - 2n, 2n ** 63n - 1n,
];

const accepted = [];
function accept(key, prefix, id) {
  const text = prefix + "_" + nameOf(key) + base62(blockOf(key, id, tagOf(prefix)));
  accepted.push({ key: key.toString("hex"), prefix, id: id.toString(), text });
}
for (const key of keys) for (const id of ids) accept(key, "order", id);
for (const prefix of prefixes) for (const key of [keys[2], keys[4]]) accept(key, prefix, 250134256414617600n);

// Texts that a careless reader with this key and prefix accepts.
const refused = [];
const [key, prefix, id] = [keys[3], "order", 250134256414617600n];
const head = prefix + "_" + nameOf(key);
const good = blockOf(key, id, tagOf(prefix));
for (const negative of [-1n, -2n, -(2n ** 62n), -(2n ** 63n), -(2n ** 63n) + id]) {
  refused.push({ why: `the block of ${negative}`, text: head + base62(blockOf(key, negative, tagOf(prefix))) });
}
for (let bit = 0; bit < 64; bit++) {
  const tag = tagOf(prefix);
  tag[bit >> 3] ^= 0x80 >> (bit & 7);
  refused.push({ why: `bit ${bit} of the tag differs`, text: head + base62(blockOf(key, id, tag)) });
}
for (let bit = 0n; bit < 128n; bit++) {
  refused.push({ why: `bit ${bit} of the block differs`, text: head + base62(good ^ (1n << bit)) });
}
for (let n = good + 2n ** 128n; n < 62n ** 22n; n += 2n ** 128n) {
  refused.push({ why: "the number of the block and a multiple of 2^128", text: head + base62(n) });
}

const lines = (list) => list.map((v) => "\n    " + JSON.stringify(v)).join(",");
process.stdout.write(
  `{\n  "accepted": [${lines(accepted)}\n  ],\n` +
    `  "key": "${key.toString("hex")}",\n  "prefix": "${prefix}",\n  "refused": [${lines(refused)}\n  ]\n}\n`,
);
