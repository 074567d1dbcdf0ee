// Reads change events, each an argument, and prints the row of each as it would be sent on.
for (const text of process.argv.slice(2)) {
  const { payload } = JSON.parse(text);
  console.log(JSON.stringify(payload.after ?? payload));
}
