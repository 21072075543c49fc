'use strict';
// Checks that leave the cluster alone and run at once.

const assert = require('assert');
const { note, until, everywhere, healthy, count, stays, remove, list, servers, sleep } = require('./world');
const { newClient, instance, register, deregister, many, soon, pollWithin } = require('./client');

const firstBeat = 10000; // this client beats for the first time up to 10 s after it registered
const interval = 5000;

async function plain() {
  const client = await newClient();
  const mine = instance(8080, { metadata: { version: '1' } });
  await register(client, 'node-plain', mine);
  await count(soon, { name: 'node-plain' }, 1);
  const got = await client.selectInstances('node-plain');
  assert.deepStrictEqual(got.map(h => [h.ip, h.port, h.clusterName, h.metadata]), [['10.2.0.1', 8080, 'DEFAULT', { version: '1' }]]);
  assert.strictEqual(await client.getServerStatus(), 'UP');
  await deregister(client, 'node-plain', mine);
  await count(soon, { name: 'node-plain' }, 0);
}

async function group() {
  const client = await newClient();
  const mine = instance(8080);
  await register(client, 'node-group', mine, 'G2');
  await count(soon, { name: 'node-group', group: 'G2' }, 1);
  await count(soon, { name: 'node-group' }, 0);
  assert.strictEqual((await client.getAllInstances('node-group', 'G2')).length, 1);
  await deregister(client, 'node-group', mine, 'G2');
  await count(soon, { name: 'node-group', group: 'G2' }, 0);
}

// The first beat comes late, yet nothing may turn unhealthy with the default timeouts.
async function lateBeat() {
  const client = await newClient();
  await register(client, 'node-late', instance(8080));
  await count(soon, { name: 'node-late' }, 1);
  await stays(firstBeat + 7000, { name: 'node-late' }, 'healthy', h => h.length === 1 && h[0].healthy);
}

async function metadata() {
  const client = await newClient();
  const want = {
    mixed: 'a;b%c+d', amp: 'x&y=z', quote: 'he said "no"', zone: 'Köln/北京', percent: '50%', hex: '%41', empty: '', plus: '1 + 1',
  };
  await register(client, 'node-metadata', instance(8080, { metadata: want, weight: 2 }));
  const same = h => h.length === 1 && h[0].weight === 2 && JSON.stringify(Object.entries(h[0].metadata).sort()) === JSON.stringify(Object.entries(want).sort());
  await everywhere(soon, { name: 'node-metadata' }, 'metadata as sent', same);
  await stays(firstBeat + interval, { name: 'node-metadata' }, 'metadata as sent', same);
  assert.deepStrictEqual((await client.getAllInstances('node-metadata'))[0].metadata, want);
}

async function namespaces() {
  for (const [port, namespace] of [[1, 'public'], [2, 'default'], [3, 'dev']]) {
    const client = await newClient({ namespace });
    await register(client, 'node-apart', instance(port));
    const only = h => h.length === 1 && h[0].port === port;
    await everywhere(soon, { name: 'node-apart', namespace }, `port ${port} alone`, only);
    assert.deepStrictEqual((await client.getAllInstances('node-apart')).map(h => h.port), [port]);
  }
  await everywhere(soon, { name: 'node-apart' }, 'port 1 without a namespace', h => h.length === 1 && h[0].port === 1);
}

async function selection() {
  const client = await newClient();
  await register(client, 'node-select', instance(1));
  await register(client, 'node-select', instance(2, { enabled: false }));
  await register(client, 'node-select', instance(3, { healthy: false }));
  await register(client, 'node-select', instance(4, { clusterName: 'east' }));
  await everywhere(soon, { name: 'node-select' }, 'three that are enabled', h => h.length === 3);
  const ports = async (...args) => (await client.selectInstances('node-select', undefined, ...args)).map(h => h.port).sort();
  assert.deepStrictEqual(await ports('', true, false), [1, 4]);
  assert.deepStrictEqual(await ports('', false, false), [3]);
  assert.deepStrictEqual(await ports('east', true, false), [4]);
}

// The listener must hear of each change, by a push or by the next poll. That the last
// instance has gone is never told by this client; the server's list is empty all the same.
async function subscription() {
  const client = await newClient();
  const told = [];
  client.subscribe('node-watched', hosts => told.push(hosts.map(h => h.port).sort().join()));
  const step = async (what, run, want) => {
    await run();
    await until(pollWithin, `callback with ${want} after ${what}`, () => told[told.length - 1] === want);
  };
  await step('the first came', () => register(client, 'node-watched', instance(1)), '1');
  await step('the second came', () => register(client, 'node-watched', instance(2)), '1,2');
  await step('the first went', () => deregister(client, 'node-watched', instance(1)), '2');
  await deregister(client, 'node-watched', instance(2));
  await count(soon, { name: 'node-watched' }, 0);
  await sleep(4000);
  assert.strictEqual(told[told.length - 1], '2');
}

async function threeHundred() {
  const client = await newClient();
  await many(client, 'node-many', 10000, 300);
  await count(soon, { name: 'node-many' }, 300);
  assert.strictEqual((await client.selectInstances('node-many')).length, 300);
  await register(client, 'node-many', instance(10300));
  const took = await until(pollWithin, '301 instances in the client', async () => (await client.selectInstances('node-many')).length === 301);
  note(`301st of 301 instances seen by the client after ${took} ms`);
  await stays(firstBeat + 7000, { name: 'node-many' }, '301 healthy', h => healthy(h) === 301);
}

// Beats count for nothing for two intervals after a removal; the next one counts.
async function returnsAfterRemoval() {
  const client = await newClient();
  await register(client, 'node-returns', instance(8080, { weight: 3, metadata: { a: 'b' } }));
  await count(soon, { name: 'node-returns' }, 1);
  await remove({ name: 'node-returns' }, '10.2.0.1', 8080);
  await count(soon, { name: 'node-returns' }, 0);
  const start = Date.now();
  await everywhere(firstBeat + 3 * interval, { name: 'node-returns' }, 'it again, as it was',
    h => h.length === 1 && h[0].healthy && h[0].weight === 3 && h[0].metadata.a === 'b');
  note(`removed by hand, back after ${Date.now() - start} ms`);
}

async function registerAgain() {
  const client = await newClient();
  for (let i = 0; i < 5; i++) {
    await register(client, 'node-again', instance(8080));
    await deregister(client, 'node-again', instance(8080));
  }
  await register(client, 'node-again', instance(8080));
  await count(soon, { name: 'node-again' }, 1);
  await stays(firstBeat + interval, { name: 'node-again' }, 'there', h => h.length === 1 && h[0].healthy);
}

async function persistent() {
  const client = await newClient();
  const mine = instance(8080, { ephemeral: false });
  await register(client, 'node-persistent', mine);
  const there = h => h.length === 1 && h[0].ephemeral === false;
  await everywhere(soon, { name: 'node-persistent' }, 'one, persistent', there);
  await deregister(client, 'node-persistent', mine);
  await count(soon, { name: 'node-persistent' }, 0);
}

// Without accounts, what a client says of itself is no reason to refuse it.
async function credentials() {
  const client = await newClient({ username: 'nacos', password: 'nacos' });
  await register(client, 'node-user', instance(8080));
  await count(soon, { name: 'node-user' }, 1);
}

// This client's keys depend on the clusters that it asked for and finds in the answer.
async function clustersEchoed() {
  const client = await newClient();
  await register(client, 'node-echo', instance(1));
  await register(client, 'node-echo', instance(2, { clusterName: 'east' }));
  await count(soon, { name: 'node-echo' }, 2);
  for (const [clusters, want] of [['', 2], ['DEFAULT', 1], ['east', 1], ['DEFAULT,east', 2], ['east,DEFAULT', 2]]) {
    assert.strictEqual((await client.getAllInstances('node-echo', undefined, clusters)).length, want, `clusters=${clusters}`);
  }
  await until(soon, 'same list from every node', async () => {
    const texts = await Promise.all(servers.map(s => list(s, { name: 'node-echo' }).then(JSON.stringify)));
    return texts.every(t => t === texts[0]);
  });
}

module.exports = [
  [0, 'register, list on every node, deregister', plain],
  [0, 'group other than the default', group],
  [0, 'first beat ten seconds late, never unhealthy', lateBeat],
  [0, 'metadata with ; % + & quotes and other scripts comes back', metadata],
  [0, 'namespaces public, default and dev are apart', namespaces],
  [0, 'select by health, enabled and cluster', selection],
  [0, 'clusters asked for are found again in the answer', clustersEchoed],
  [0, 'subscription told of each change', subscription],
  [0, '300 instances of one service', threeHundred],
  [0, 'an instance removed by hand returns with its beats', returnsAfterRemoval],
  [0, 'registered again right after deregistration, it stays', registerAgain],
  [0, 'persistent instance', persistent],
  [0, 'user and password without accounts', credentials],
];
