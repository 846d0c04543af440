#!/usr/bin/env node
// Starts the program paceline, which is in the package of this platform, with all that this was started with.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const system = `${process.platform}-${process.arch}`;
const name = process.platform === 'win32' ? 'paceline.exe' : 'paceline';

let program;
try {
  program = require.resolve(`@paceline/${system}/bin/${name}`);
} catch {
  console.error(
    `paceline: the package @paceline/${system} is not installed. Either there is none for this platform, or npm was told to\n` +
      'leave out optional dependencies (--omit=optional, --no-optional), or node_modules was copied from another platform.\n' +
      'Install again without that, or see https://github.com/paceline-go/paceline for other ways to install.',
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit', windowsHide: true });

// A signal from a terminal reaches the program by itself, and it alone decides what follows. One that is sent to this
// process alone is handed on. Of the terminal's, the program must not see a copy: its second one breaks off.
for (const signal of ['SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
for (const signal of ['SIGINT', 'SIGQUIT']) {
  process.on(signal, () => {
    if (!process.stdin.isTTY && !process.stdout.isTTY && !process.stderr.isTTY) child.kill(signal);
  });
}

child.on('error', (error) => {
  console.error(`paceline: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
