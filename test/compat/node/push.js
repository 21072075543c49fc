'use strict';
// Checks that changes come by push and not by a poll, on a cluster that nobody else uses.

const assert = require('assert');
const { servers, alone, fault, until, count } = require('./world');
const { newClient, instance, register, deregister, soon } = require('./client');
const { Series, subscribed, pollInterval } = require('./series');

const resumeWithin = 25000; // two polls

// listen subscribes and gives a function that waits for a callback with these instances,
// "port*weight" of each, and what was heard last.
function listen(client, name) {
  const told = [];
  client.subscribe(name, hosts => told.push({ at: performance.now(), hosts: hosts.map(h => `${h.port}*${h.weight}`).sort().join(' ') }));
  const heard = want => within => new Promise((resolve, reject) => {
    const start = performance.now();
    const look = () => {
      const last = told[told.length - 1];
      if (last && last.hosts === want) resolve(last.at);
      else if (performance.now() - start > within) reject(new Error(`not told "${want}" within ${within} ms, but "${last && last.hosts}"`));
      else setTimeout(look, 2);
    };
    look();
  });
  return { heard, told };
}

// comeAndGo makes 3n-1 changes to a service, each heard: n instances join those that are
// there, with their weights, get another weight, and all but the last go.
async function comeAndGo(series, client, name, ear, there, n) {
  const step = (what, port, weight, change) => {
    if (weight) there.set(port, weight);
    else there.delete(port);
    const want = [...there].map(([p, w]) => `${p}*${w}`).sort().join(' ');
    return series.step(`${what} ${port}`, () => change(client, name, instance(port, { weight })), ear.heard(want));
  };
  for (let port = 1; port <= n; port++) {
    await step('registered', port, 1, register);
    await step('weight of', port, 2, register);
  }
  for (let port = 1; port < n; port++) await step('deregistered', port, 0, deregister);
}

const only = (...nodes) => newClient({ serverList: nodes });

// Who asked the first node hears of what is done through the second.
async function pushed() {
  const watcher = await only(servers[0]), changer = await only(servers[1]);
  await alone(async () => {
    const ear = listen(watcher, 'node-pushed');
    await until(soon, 'subscription', async () => (await subscribed(servers.slice(0, 1), 'node-pushed')).length === 1);
    const series = new Series(servers.slice(0, 1));
    await comeAndGo(series, changer, 'node-pushed', ear, new Map(), 15);
    const { cacheMillis } = watcher._hostReactor.getServiceInfoMap['DEFAULT_GROUP@@node-pushed@@DEFAULT'];
    assert.strictEqual(cacheMillis, pollInterval, 'the interval at which the client polls');
    series.verdict('subscribed at one node, changed through another');
  });
}

// The empty list is pushed and acknowledged, yet this client keeps what it had, until
// there is something again.
async function lastPushed() {
  const watcher = await only(servers[0]), changer = await only(servers[1]);
  const name = 'node-last-pushed';
  await alone(async () => {
    const ear = listen(watcher, name);
    await until(soon, 'subscription', async () => (await subscribed(servers.slice(0, 1), name)).length === 1);
    const series = new Series(servers.slice(0, 1));
    await series.step('the first came', () => register(changer, name, instance(1)), ear.heard('1*1'));
    const before = ear.told.length;
    await series.step('the last went', () => deregister(changer, name, instance(1)), async () => undefined);
    await count(soon, { name }, 0);
    // It has acknowledged, so it has decided.
    assert.strictEqual(ear.told.length, before, 'callbacks after the last went');
    assert.deepStrictEqual((await watcher.getAllInstances(name, undefined, 'DEFAULT')).map(h => h.port), [1]);
    await series.step('another came', () => register(changer, name, instance(2)), ear.heard('2*1'));
    series.verdict('last instance gone and another come');
  });
}

// The node that the client asked is killed. The client goes to another with its next
// query; from then on, that one pushes.
async function askedKilled() {
  const watcher = await newClient();
  const name = 'node-push-killed';
  await alone(async () => {
    const ear = listen(watcher, name);
    let asked = [];
    await until(soon, 'subscription', async () => (asked = await subscribed(servers, name)).length > 0);
    const id = `n${servers.indexOf(asked[0]) + 1}`;
    const left = servers.filter(server => server !== asked[0]);
    await fault('kill', id);
    try {
      const killed = performance.now();
      const changer = await only(left[0]);
      await register(changer, name, instance(99));
      const gap = await ear.heard('99*1')(resumeWithin) - killed;
      await until(resumeWithin, 'node that pushes to the client', async () => (await subscribed(left, name)).length > 0);
      const series = new Series(left);
      await comeAndGo(series, changer, name, ear, new Map([[99, 1]]), 5);
      series.verdict(`the node asked was killed, the next change heard after ${gap.toFixed(0)}ms, then`);
    } finally {
      await fault('start', id);
    }
  });
}

module.exports = [
  [-3, 'push of each change through another node', pushed],
  [-2, 'push when the last instance leaves', lastPushed],
  [-1, 'push by another node when the one asked is killed', askedKilled],
];
