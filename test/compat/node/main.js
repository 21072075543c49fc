'use strict';
// Checks rollcall with the unmodified npm package nacos.

const { note, unrest, runAll } = require('./world');
const { closeAll, retried } = require('./client');
const pushChecks = require('./push');
const quietChecks = require('./quiet');
const faultChecks = require('./faults');

process.on('unhandledRejection', err => {
  console.log(`FAIL unhandled rejection: ${err && err.message}`);
});

(async () => {
  await runAll([...pushChecks, ...quietChecks, ...faultChecks]);
  if (unrest) note(`${retried()} calls were repeated`);
  await Promise.race([closeAll(), new Promise(resolve => setTimeout(resolve, 2000))]);
  process.exit(0); // the client's sleeping loops would keep the process for seconds
})();
