'use strict';
// Leads connections to the named hosts to paceline, which waits for the limit. The program still
// checks the certificate of the host that it asked for.
const net = require('net');
const named = {/* named */};
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  const [options, done] = Array.isArray(args[0]) ? args[0] : net._normalizeArgs(args);
  const host = String((!options.path && options.host) || '').toLowerCase().replace(/\.$/, '');
  const port = named[`${host.includes(':') ? `[${host}]` : host}:${options.port}`];
  if (!port) return connect.apply(this, args);
  const here = { ...options, host: '127.0.0.1', port, lookup: undefined, localAddress: undefined, family: 4 };
  return connect.call(this, here, done);
};
