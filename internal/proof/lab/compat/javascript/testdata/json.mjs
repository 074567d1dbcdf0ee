// Reads documents of a server, each an argument, and prints what a client would send back.
for (const text of process.argv.slice(2)) {
  console.log(JSON.stringify(JSON.parse(text)));
}
