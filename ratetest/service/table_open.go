package service

// What people share.
var opens = []*tableRow{}
