'use strict';
// The unmodified client, and calls as an application makes them.

const { NacosNamingClient } = require('nacos');
const { servers, unrest } = require('./world');

// soon bounds what must be seen without a client's poll in between; pollWithin what the
// client sees by itself; retryWithin a call while leaders are being killed. The client polls
// every 10 s. The nodes that it has asked push to it in between, but those that are killed
// forget it, and a poll that meets a node that is starting may be as good as none.
const soon = 5000, pollWithin = unrest ? 25000 : 11000, retryWithin = 15000;

const quiet = { info() {}, debug() {}, warn() {}, error() {}, log() {} };
const open = [];
let retried = 0;

// newClient makes a client of all nodes, or of those given.
async function newClient(options = {}) {
  const client = new NacosNamingClient(Object.assign({ logger: quiet, serverList: servers.slice() }, options));
  client.on('error', () => {});
  client._hostReactor.on('error', () => {}); // a poll that failed is reported here
  await client.ready();
  open.push(client);
  return client;
}

const closeAll = () => Promise.all(open.map(client => client.close()));

// call makes a call that must succeed at the first try, or, while leaders are being
// killed, when it is repeated for a while.
async function call(what, run) {
  const start = Date.now();
  for (;;) {
    try {
      return await run();
    } catch (err) {
      if (!unrest || Date.now() - start > retryWithin) throw new Error(`${what}: ${err.message} after ${Date.now() - start} ms`);
      retried++;
    }
  }
}

const instance = (port, more) => Object.assign({ ip: '10.2.0.1', port }, more);
const register = (client, name, inst, group) => call('register', () => client.registerInstance(name, inst, group));
const deregister = (client, name, inst, group) => call('deregister', () => client.deregisterInstance(name, inst, group));

// many registers instances of one service, a few at a time.
async function many(client, name, first, n, more) {
  let next = first;
  await Promise.all(Array.from({ length: 16 }, async () => {
    while (next < first + n) await register(client, name, instance(next++, more));
  }));
}

module.exports = { newClient, closeAll, instance, register, deregister, many, call, soon, pollWithin, retried: () => retried };
